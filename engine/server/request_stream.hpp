// SPDX-License-Identifier: Apache-2.0
// JSON Lines on two file descriptors: requests in, events out (protocol/README.md). A request that fails gets an
// `error` event.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "server/reader.hpp"

namespace dutperf {

class RequestStream {
public:
    // Throws Error if the request cannot be carried out.
    using Dispatch = std::function<void(const nlohmann::json& id, const std::string& method, Reader& request)>;
    enum class Input : std::uint8_t { nothing, some, end };

    RequestStream(int input, int output) : input_(input), output_(output) {}

    // Waits for input at most this long; 0: not at all, -1: for ever. A signal that ends the engine is the end, too.
    Input wait(int timeout_ms);

    // Passes every complete request to `dispatch`.
    void answer_all(const Dispatch& dispatch);

    // Does what was asked for; if it fails, the answer says why. Returns whether it was done.
    bool answering(const nlohmann::json& id, const std::function<void()>& what) const;

    void write(nlohmann::json event, const nlohmann::json& id) const;

private:
    bool take_line(std::string& line);
    void answer(const std::string& line, const Dispatch& dispatch) const;

    int input_, output_;
    std::string buffer_;
};

}  // namespace dutperf
