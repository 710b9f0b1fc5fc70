// SPDX-License-Identifier: Apache-2.0
// The exception for requests that fail: a code of the protocol, a message, and the member of the request that caused
// it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace dutperf {

class Error : public std::runtime_error {
public:
    Error(std::string code, const std::string& message, std::string field = {})
        : std::runtime_error(message), code_(std::move(code)), field_(std::move(field)) {}

    [[nodiscard]] const std::string& code() const { return code_; }
    [[nodiscard]] const std::string& field() const { return field_; }  // empty: none

private:
    std::string code_, field_;
};

}  // namespace dutperf
