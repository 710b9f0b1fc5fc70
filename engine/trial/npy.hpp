// SPDX-License-Identifier: Apache-2.0
// Files of records in NumPy's format (.npy, version 1.0).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dutperf {

inline constexpr std::size_t kNpyHeaderSize = 192;  // a multiple of 64, with room for any count

// `members`: of a record, as in NumPy: "('sequence', '<u8'), ('delay_ns', '<f8')".
std::string npy_header(std::string_view members, std::uint64_t records);

// Creates a file, and its directory if needed. Throws Error "file" for `field` if it cannot.
int create_file(const std::string& path, const std::string& field);

// Adds to `written` what could be written. Returns whether that was all of it.
bool write_all(int file, const char* bytes, std::size_t size, std::size_t& written);

// Why the last call to the system failed.
std::string system_message();

}  // namespace dutperf
