// SPDX-License-Identifier: Apache-2.0
#include "trial/npy.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "platform/error.hpp"

namespace dutperf {

static_assert(std::endian::native == std::endian::little, "records are written as they lie in memory");

std::string npy_header(std::string_view members, std::uint64_t records) {
    std::string text = "{'descr': [" + std::string(members) + "], 'fortran_order': False, 'shape': (" +
                       std::to_string(records) + ",), }";
    constexpr std::size_t kBefore = 10;
    text.resize(kNpyHeaderSize - kBefore - 1, ' ');
    const auto length = static_cast<std::uint16_t>(text.size() + 1);
    const std::array<char, 4> numbers{1, 0, static_cast<char>(length & 0xFFU), static_cast<char>(length >> 8U)};
    return "\x93NUMPY" + std::string(numbers.begin(), numbers.end()) + text + "\n";
}

int create_file(const std::string& path, const std::string& field) {
    std::error_code ignored;  // if this fails, opening the file fails too
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) throw Error("file", "cannot write " + path + ": " + system_message(), field);
    return file;
}

bool write_all(int file, const char* bytes, std::size_t size, std::size_t& written) {
    while (written < size) {
        const ssize_t count = write(file, bytes + written, size - written);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        written += static_cast<std::size_t>(count);
    }
    return true;
}

std::string system_message() { return std::generic_category().message(errno); }

}  // namespace dutperf
