// SPDX-License-Identifier: Apache-2.0
// The reference DUT's loop: frames, and now and then a look at the requests of its client (engine/refdut/README.md).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "refdut/reference_dut.hpp"
#include "server/request_stream.hpp"

namespace dutperf {

// A UNIX socket that clients connect to, one after the other. Throws std::runtime_error.
int listen_on(const std::string& path);

class DutServer {
public:
    // Serves one client on two file descriptors until it ends its input.
    void serve(int input, int output);
    // Serves whoever connects, for ever.
    [[noreturn]] void serve_clients(int listener);

private:
    // Goes on with forwarding until it is time to look at the requests; then how long that look may take.
    int forward_until_look();
    void dispatch(const RequestStream& client, const nlohmann::json& id, const std::string& method, Reader& request);
    nlohmann::json open(Reader& request);
    nlohmann::json act(const std::string& method, Reader& request);
    nlohmann::json counters();

    std::unique_ptr<ReferenceDut> dut_;
};

}  // namespace dutperf
