// SPDX-License-Identifier: Apache-2.0
// What cannot be done as asked: a code of the protocol, one clear sentence, and the request's member that is to blame.
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
