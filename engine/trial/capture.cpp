// SPDX-License-Identifier: Apache-2.0
// The file's blocks: draft-ietf-opsawg-pcapng sections 4.1 (section header), 4.2 (interface), 4.3 (packet).
#include "trial/capture.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace dutperf {

namespace {

constexpr std::uint32_t kSectionHeader = 0x0A0D0D0A, kInterface = 1, kPacket = 6, kByteOrder = 0x1A2B3C4D;
constexpr std::uint16_t kEndOfOptions = 0, kComment = 1, kInterfaceName = 2, kResolution = 9, kPacketFlags = 2;
constexpr std::uint16_t kEthernet = 1, kMajor = 1;
constexpr std::uint32_t kInbound = 1, kOutbound = 2;

// A block in the byte order of this machine, with its length before and behind it.
class Block {
public:
    explicit Block(std::uint32_t type) { add(type).add(std::uint32_t{0}); }

    template <class T>
    Block& add(T value) {
        const auto* bytes = reinterpret_cast<const char*>(&value);
        return append(bytes, sizeof value);
    }
    Block& append(const char* bytes, std::size_t size) {
        bytes_.append(bytes, size);
        return *this;
    }
    // Bytes are padded to a multiple of four.
    Block& pad() { return append("\0\0\0", (4 - bytes_.size() % 4) % 4); }
    Block& option(std::uint16_t code, const std::string& value) {
        return add(code).add(static_cast<std::uint16_t>(value.size())).append(value.data(), value.size()).pad();
    }

    void write(std::ostream& file) {
        const auto size = static_cast<std::uint32_t>(bytes_.size() + sizeof(std::uint32_t));
        std::memcpy(&bytes_[sizeof size], &size, sizeof size);
        add(size);
        file.write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    }

private:
    std::string bytes_;
};

void write_head(std::ostream& file, const std::vector<std::string>& ports) {
    constexpr std::uint64_t kUnknownSize = ~std::uint64_t{0};
    Block(kSectionHeader).add(kByteOrder).add(kMajor).add(std::uint16_t{0}).add(kUnknownSize).write(file);
    for (const std::string& name : ports) {
        Block(kInterface)
            .add(kEthernet)
            .add(std::uint16_t{0})
            .add(std::uint32_t{0})  // no limit of the frames' sizes
            .option(kInterfaceName, name)
            .option(kResolution, "\x09")  // ns
            .add(kEndOfOptions)
            .add(std::uint16_t{0})
            .write(file);
    }
}

void write_frame(std::ostream& file, const CapturedFrame& frame) {
    const std::uint32_t size = frame.size, flags = frame.kind == CapturedAs::lost ? kOutbound : kInbound;
    Block(kPacket)
        .add(std::uint32_t{frame.side})
        .add(static_cast<std::uint32_t>(frame.time_ns >> 32U))
        .add(static_cast<std::uint32_t>(frame.time_ns))
        .add(size)
        .add(size)
        .append(reinterpret_cast<const char*>(frame.bytes), frame.size)
        .pad()
        .option(kComment, frame.comment)
        .option(kPacketFlags, {reinterpret_cast<const char*>(&flags), sizeof flags})
        .add(kEndOfOptions)
        .add(std::uint16_t{0})
        .write(file);
}

}  // namespace

CaptureBuffer::CaptureBuffer(const CaptureSpec& spec, std::size_t longest) : most_(spec.most) {
    const std::uint64_t frames = std::accumulate(most_.begin(), most_.end() - 1, std::uint64_t{0});  // without lost
    kept_.reserve(frames);
    bytes_.resize(std::min<std::uint64_t>(frames * longest, kMostBytes));  // writes every page before the trial
}

std::string write_capture(const std::string& path, const std::vector<std::string>& ports,
                          std::vector<CapturedFrame> frames) {
    std::ranges::stable_sort(frames, {}, &CapturedFrame::time_ns);
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    if (!parent.empty()) std::filesystem::create_directories(parent, error);
    errno = 0;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    write_head(file, ports);
    for (const CapturedFrame& frame : frames) write_frame(file, frame);
    file.flush();
    return file ? "" : std::string(std::strerror(errno != 0 ? errno : EIO));
}

}  // namespace dutperf
