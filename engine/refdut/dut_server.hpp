// SPDX-License-Identifier: Apache-2.0
// The main loop of the reference DUT: forwards frames and polls for requests of its client at intervals
// (engine/refdut/README.md).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "refdut/reference_dut.hpp"
#include "server/request_stream.hpp"

namespace dutperf {

// Makes a UNIX socket to which clients connect, one after the other. Throws std::runtime_error.
int listen_on(const std::string& path);

class DutServer {
public:
    // Serves one client on two file descriptors until the end of its input.
    void serve(int input, int output);
    // Serves one client after the other, forever.
    [[noreturn]] void serve_clients(int listener);

private:
    // Forwards frames until the next poll for requests; returns the timeout of that poll.
    int forward_until_poll();
    void dispatch(const RequestStream& client, const nlohmann::json& id, const std::string& method, Reader& request);
    nlohmann::json open(Reader& request);
    nlohmann::json act(const std::string& method, Reader& request);
    nlohmann::json counters();

    std::unique_ptr<ReferenceDut> dut_;
    bool naps_ = false;  // it slept between the last two polls
};

}  // namespace dutperf
