// SPDX-License-Identifier: Apache-2.0
#include "port/socket_device.hpp"
#include "platform/ending.hpp"

#include <rte_eth_vhost.h>
#include <rte_vhost.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "port/own_sockets.hpp"
#include "port/rings.hpp"

namespace dutperf {

namespace {

using Arguments = std::map<std::string, std::string>;
using Kind = PortSpec::Kind;

Arguments parse(const std::string& devargs) {
    Arguments all;
    for (std::size_t from = 0; from < devargs.size();) {
        const std::size_t end = std::min(devargs.find(',', from), devargs.size()),
                          equals = std::min(devargs.find('=', from), end);
        all[devargs.substr(from, equals - from)] = equals == end ? "" : devargs.substr(equals + 1, end - equals - 1);
        from = end + 1;
    }
    return all;
}

std::optional<std::string> argument(const PortSpec& spec, const std::string& key) {
    const Arguments arguments = parse(spec.devargs);
    const auto found = arguments.find(key);
    return found != arguments.end() ? std::optional(found->second) : std::nullopt;
}

bool has(const PortSpec& spec, const std::string& key, const std::string& value) {
    return argument(spec, key) == value;
}

// A driver and its arguments. The user's arguments override `defaults` but not `owned`.
struct Driver {
    std::string name;
    Arguments owned, defaults;
};

constexpr std::uint32_t kMaxMemifRing = 16384;

std::uint32_t memif_ring(const PortOptions& options) {
    return std::min(std::bit_ceil(options.receive_ring), kMaxMemifRing);
}

std::string log2_of(std::uint32_t power_of_two) { return std::to_string(std::countr_zero(power_of_two)); }

// No offload is configured, so none is negotiated: the other side must complete the checksums of frames that it sends.
Driver virtio_user(const PortOptions& options) {
    return {"net_virtio_user",
            {{"path", options.spec.argument},
             {"queues", std::to_string(options.queues)},
             {"queue_size", std::to_string(max_receive_descriptors(options))}},
            {}};
}

// The driver completes checksums that a guest leaves open.
Driver vhost_user(const PortOptions& options) {
    return {"net_vhost", {{"iface", options.spec.argument}, {"queues", std::to_string(options.queues)}}, {}};
}

Driver memif(const PortOptions& options) {
    const std::uint32_t buffer = std::max<std::uint32_t>(2048, std::bit_ceil<std::uint32_t>(options.max_frame_size));
    Driver made{"net_memif",
                {{"socket", options.spec.argument}},
                {{"role", "client"}, {"socket-abstract", "no"}, {"bsize", std::to_string(buffer)}}};
    Arguments& sized = listens(options.spec) ? made.defaults : made.owned;  // the client makes the queues
    sized["rsize"] = log2_of(memif_ring(options));
    return made;
}

// Of the size that the user gives.
PeerQueue memif_queue(const PortOptions& options) {
    if (!listens(options.spec)) return {.room = memif_ring(options)};
    const std::string given = argument(options.spec, "rsize").value_or("");
    unsigned log2 = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), log2);
    if (error == std::errc{} && log2 < 32 && end == given.data() + given.size()) return {.room = 1U << log2};
    return {.room = kMaxMemifRing, .is_known = false};
}

Driver driver_of(const PortOptions& options) {
    if (options.spec.kind == Kind::virtio_user) return virtio_user(options);
    return options.spec.kind == Kind::vhost_user ? vhost_user(options) : memif(options);
}

std::optional<sockaddr_un> address_of(const std::string& path) {
    sockaddr_un address{};
    if (path.size() >= sizeof address.sun_path) return std::nullopt;
    address.sun_family = AF_UNIX;
    std::ranges::copy(path, address.sun_path);
    return address;
}

// Tries to connect and closes the connection at once. Returns 0 or the kernel's error.
int try_to_connect(const PortOptions& options) {
    const auto address = address_of(options.spec.argument);
    if (!address) return ENAMETOOLONG;
    const int fd = socket(AF_UNIX, (options.spec.kind == Kind::memif ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC, 0);
    const int status = connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0 ? 0 : errno;
    close(fd);
    return status;
}

std::string with_swapped_roles(const PortSpec& spec) {
    switch (spec.kind) {
        case Kind::virtio_user: return "virtio_user:" + spec.argument + ",server=1";
        case Kind::vhost_user: return "vhost_user:" + spec.argument;
        default: return "memif:" + spec.argument + ",role=server";
    }
}

void prepare_listening(const PortOptions& options, const std::filesystem::file_status& status) {
    const std::string& path = options.spec.argument;
    std::error_code ignored;
    if (const auto folder = std::filesystem::path(path).parent_path();
        !std::filesystem::is_directory(folder, ignored)) {
        unavailable(options, "there is no folder " + folder.string() + " for the socket " + path + ": make it");
    }
    if (status.type() == std::filesystem::file_type::not_found) return;
    if (status.type() != std::filesystem::file_type::socket)
        unavailable(options, path + " is a file, not a socket: name another path");
    if (try_to_connect(options) != ECONNREFUSED) {
        away(options,
             "another program listens on the socket " + path + ": end it, or give each port a socket of its own");
    }
    unlink(path.c_str());  // left by a process that was killed
}

void prepare_connecting(const PortOptions& options, const std::filesystem::file_status& status) {
    const std::string& path = options.spec.argument;
    if (status.type() == std::filesystem::file_type::not_found &&
        options.spec.kind != Kind::vhost_user) {  // vhost keeps trying
        away(options, "there is no socket " + path + ": start the switch that makes it first, or use " +
                          with_swapped_roles(options.spec) + ", where the tester makes it and the switch connects");
    }
    if (status.type() != std::filesystem::file_type::not_found && status.type() != std::filesystem::file_type::socket) {
        unavailable(options, path + " is not a socket: name the one on which the switch listens");
    }
}

}  // namespace

DeviceName socket_device(const PortOptions& options) {
    const Driver driver = driver_of(options);
    Arguments arguments = parse(options.spec.devargs);
    for (const auto& [key, value] : driver.owned) {
        if (arguments.contains(key))
            unavailable(options,
                        "the argument " + key + " is set by the port's socket, queues and receive_ring: leave it out");
    }
    arguments.insert(driver.owned.begin(), driver.owned.end());
    arguments.insert(driver.defaults.begin(), driver.defaults.end());
    std::string text;
    for (const auto& [key, value] : arguments)
        text.append(text.empty() ? "" : ",").append(key).append("=").append(value);
    return {driver.name + "_" + options.side, text};
}

bool listens(const PortSpec& spec) {
    switch (spec.kind) {
        case Kind::virtio_user: return has(spec, "server", "1");
        case Kind::vhost_user: return !has(spec, "client", "1");
        default: return has(spec, "role", "server");
    }
}

void prepare_socket(const PortOptions& options) {
    std::error_code ignored;
    const auto status = std::filesystem::status(options.spec.argument, ignored);
    listens(options.spec) ? prepare_listening(options, status) : prepare_connecting(options, status);
}

std::string connection_error(const PortOptions& options) {
    const std::string& path = options.spec.argument;
    if (listens(options.spec)) return "the tester cannot listen on the socket " + path;
    const int status = try_to_connect(options);
    if (status == ECONNREFUSED)
        return "nobody listens on the socket " + path + ": the program that made it has ended; start it again";
    if (status != 0) return "the socket " + path + " accepts no connection: " + std::strerror(status);
    const std::string protocol = options.spec.kind == Kind::memif ? "memif" : "vhost-user";
    return "the program that listens on the socket " + path + " does not complete the " + protocol +
           " handshake: check that the switch uses this socket for it and has " + std::to_string(options.queues) +
           " queue(s)";
}

// The queues of a vhost-user port are in the memory of the other side, the guest, which created them.
PeerQueue peer_queue(const PortOptions& options, std::uint16_t port) {
    constexpr std::uint16_t kFirstFilledByGuest = 1;
    if (options.spec.kind == Kind::memif) return memif_queue(options);
    if (options.spec.kind == Kind::virtio_user) return {.room = max_receive_descriptors(options)};
    rte_vhost_vring ring{};
    const int device = rte_eth_vhost_get_vid_from_port_id(port);
    if (device < 0 || rte_vhost_get_vhost_vring(device, kFirstFilledByGuest, &ring) != 0) return {};
    return {.room = ring.size};
}

SocketDeadline::SocketDeadline(std::string path, std::chrono::milliseconds timeout)
    : path_(std::move(path)), thread_([this, timeout] { watch(timeout); }) {}

SocketDeadline::~SocketDeadline() {
    {
        const std::lock_guard lock(mutex_);
        finished_ = true;
    }
    ends_.notify_all();
    thread_.join();
}

// On a socket that is shut down, accept() and recv() return with an error.
void SocketDeadline::watch(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    constexpr std::chrono::milliseconds kAgain{50};  // a signal handler can notify nobody
    const auto until = std::chrono::steady_clock::now() + timeout;
    while (!finished_ && !ending() && std::chrono::steady_clock::now() < until) ends_.wait_for(lock, kAgain);
    if (finished_) return;
    passed_ = true;
    const auto ends_at_path = [this](int fd) {
        return std::ranges::any_of(std::array{getsockname, getpeername}, [&](auto name_of) {
            sockaddr_un address{};
            socklen_t length = sizeof address;
            return name_of(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 && address.sun_family == AF_UNIX &&
                   path_ == address.sun_path;
        });
    };
    for (const int fd : own_sockets(ends_at_path)) shutdown(fd, SHUT_RDWR);
}

}  // namespace dutperf
