// SPDX-License-Identifier: Apache-2.0
// The exception for requests that fail: a code of the protocol, a message, and the member of the request that caused
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace dutperf {

class Error : public std::runtime_error {
public:
    Error(std::string code, const std::string& message, std::string field = {},
          std::optional<std::uint32_t> max_frame_size = {})
        : std::runtime_error(message),
          code_(std::move(code)),
          field_(std::move(field)),
          max_frame_size_(max_frame_size) {}

    [[nodiscard]] const std::string& code() const { return code_; }
    [[nodiscard]] const std::string& field() const { return field_; }  // empty: none
    // Where shorter frames are the remedy: the longest that would do.
    [[nodiscard]] std::optional<std::uint32_t> max_frame_size() const { return max_frame_size_; }

private:
    std::string code_, field_;
    std::optional<std::uint32_t> max_frame_size_;
};

}  // namespace dutperf
