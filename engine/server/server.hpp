// SPDX-License-Identifier: Apache-2.0
// The request loop (protocol/README.md): JSON Lines in, JSON Lines out, one trial at a time. The end of input ends everything.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "server/session.hpp"

namespace dutperf {

class Server {
public:
    // Reads requests from `input` and writes events to `output` (file descriptors).
    Server(int input, int output) : input_(input), output_(output) {}

    void serve_until_end_of_input();

private:
    enum class Input : std::uint8_t { nothing, some, end };
    Input wait_for_input();
    bool take_line(std::string& line);
    void handle(const std::string& line);
    void dispatch(const nlohmann::json& id, const std::string& method, class Reader& request);
    void open(const nlohmann::json& id, class Reader& request);
    void run(const nlohmann::json& id, class Reader& request);
    void stop(const nlohmann::json& id);
    void look_after_trial();
    void write(nlohmann::json event, const nlohmann::json& id) const;

    int input_, output_;
    std::string buffer_;
    std::unique_ptr<Session> session_;
    std::unique_ptr<RunningTrial> trial_;  // while one runs
    nlohmann::json trial_id_;
    double next_progress_s_ = 0;
};

}  // namespace dutperf
