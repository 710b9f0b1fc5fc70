// SPDX-License-Identifier: Apache-2.0
#include "port/port_spec.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <regex>

#include "platform/error.hpp"

namespace dutperf {

namespace {

// Virtual devices whose drivers copy frames or pass them to a process that copies.
constexpr std::array<std::string_view, 9> kCopying{"net_af_packet", "net_af_xdp",      "net_memif",
                                                   "net_null",      "net_pcap",        "net_ring",
                                                   "net_tap",       "net_virtio_user", "net_vhost"};

// The kernel's form: 0000:3b:00.0.
std::string kernel_name(const std::smatch& address) {
    const unsigned long domain = address[1].matched ? std::stoul(address[1].str(), nullptr, 16) : 0;
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%04lx:%02lx:%02lx.%s", domain, std::stoul(address[2].str(), nullptr, 16),
                  std::stoul(address[3].str(), nullptr, 16), address[4].str().c_str());
    return text.data();
}

// Nothing if the text is of another kind.
std::optional<PortSpec> parse_socket(const std::string& text, const std::string& field) {
    using Kind = PortSpec::Kind;
    constexpr std::size_t kLongest = 107;  // the kernel's limit
    static const std::regex form("(virtio_user|vhost_user|memif):([^,]*)(?:,(\\S+))?");
    std::smatch parts;
    if (!std::regex_match(text, parts, form)) return std::nullopt;
    const std::string socket = parts[2].str();
    if (!socket.starts_with('/') || socket.size() > kLongest || socket.find_first_of(" \t\n") != std::string::npos) {
        throw Error("bad_request",
                    "'" + socket + "' is not the path of a socket: give one that begins with / and has " +
                        std::to_string(kLongest) + " characters at most",
                    field);
    }
    const Kind kind = parts[1] == "memif"        ? Kind::memif
                      : parts[1] == "vhost_user" ? Kind::vhost_user
                                                 : Kind::virtio_user;
    return PortSpec{.kind = kind, .argument = socket, .devargs = parts[3].str()};
}

}  // namespace

bool PortSpec::shares_memory() const {
    return kind == Kind::virtio_user || (kind == Kind::vdev && argument.starts_with("net_virtio_user"));
}

bool PortSpec::has_private_buffers() const {
    constexpr std::array kPrivate{Kind::kernel, Kind::af_xdp, Kind::af_packet, Kind::ring, Kind::null};
    return std::ranges::find(kPrivate, kind) != kPrivate.end();
}

bool PortSpec::does_dma() const {
    if (kind == Kind::pci) return true;
    return kind == Kind::vdev &&
           std::ranges::none_of(kCopying, [this](std::string_view name) { return argument.starts_with(name); });
}

std::string the_port(const std::string& name) {
    return name == "left" || name == "right" ? "the " + name + " port" : "port " + name;
}

PortSpec parse_port_spec(const std::string& text, const std::string& field) {
    using Kind = PortSpec::Kind;
    static const std::regex pci("(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\\.([0-7])(?:,(\\S+))?");
    if (std::smatch address; std::regex_match(text, address, pci))
        return {.kind = Kind::pci, .argument = kernel_name(address), .devargs = address[5].str()};
    if (text == "ring") return {.kind = Kind::ring, .argument = {}, .devargs = {}};
    if (text == "null") return {.kind = Kind::null, .argument = {}, .devargs = {}};
    if (auto socket = parse_socket(text, field)) return *socket;
    struct Prefix {
        std::string text;
        Kind kind;
    };
    static const std::array<Prefix, 3> prefixes{
        {{"af_packet:", Kind::af_packet}, {"af_xdp:", Kind::af_xdp}, {"vdev:", Kind::vdev}}};
    for (const auto& [prefix, kind] : prefixes) {
        if (text.starts_with(prefix) && text.size() > prefix.size())
            return {.kind = kind, .argument = text.substr(prefix.size()), .devargs = {}};
    }
    static const std::regex interface("[A-Za-z0-9_.-]{1,15}");
    if (std::regex_match(text, interface)) return {.kind = Kind::kernel, .argument = text, .devargs = {}};
    throw Error("bad_request",
                "'" + text +
                    "' is not a port: use a PCI address such as 0000:01:00.0, the name of an interface, af_xdp:IF, "
                    "af_packet:IF, virtio_user:SOCKET, "
                    "vhost_user:SOCKET, "
                    "memif:SOCKET, ring, null or vdev:DEVARGS",
                field);
}

}  // namespace dutperf
