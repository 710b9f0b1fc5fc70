// SPDX-License-Identifier: Apache-2.0
// The request loop (protocol/README.md): JSON Lines in, JSON Lines out, one trial at a time. It ends at the end of
// input.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "server/request_stream.hpp"
#include "server/session.hpp"

namespace dutperf {

class Server {
public:
    // Reads requests from `input` and writes events to `output` (file descriptors).
    Server(int input, int output) : stream_(input, output) {}

    void serve_until_end_of_input();

private:
    [[nodiscard]] int patience_ms() const;
    void dispatch(const nlohmann::json& id, const std::string& method, Reader& request);
    void open(const nlohmann::json& id, Reader& request);
    void load(const nlohmann::json& id, Reader& request);
    void run(const nlohmann::json& id, Reader& request);
    void stop(const nlohmann::json& id, bool drains);
    void start_waiting();
    void look_after_trial();

    using Clock = std::chrono::steady_clock;
    // A trial that waits for its links.
    struct Waiting {
        TrialSpec spec;
        nlohmann::json id;
        Clock::time_point until;
    };

    RequestStream stream_;
    std::unique_ptr<Session> session_;
    std::shared_ptr<FrameList> frames_;    // for replays
    std::optional<Waiting> waiting_;       // a trial that has not started
    std::unique_ptr<RunningTrial> trial_;  // the running trial
    nlohmann::json trial_id_;
    [[nodiscard]] double progress_s() const;  // between two progress events of the running trial
    double next_progress_s_ = 0;
};

}  // namespace dutperf
