// SPDX-License-Identifier: Apache-2.0
#include "port/port_locks.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "platform/error.hpp"
#include "port/left_changes.hpp"
#include "port/socket_device.hpp"

namespace dutperf {

namespace {

constexpr std::chrono::milliseconds kPatience{1000}, kAgain{50};
constexpr std::size_t kLongestCommand = 200;
// Arguments of virtual devices that name what others may have too. A file that is only read is not among them.
const std::set<std::string> kInterfaceKeys{"iface", "rx_iface", "rx_iface_in", "tx_iface", "remote"};
const std::set<std::string> kPathKeys{"path", "socket", "tx_pcap"};

// Names of network namespaces change and may be several; its inode is one as long as a process is in it.
std::optional<std::string> interface_resource(const std::string& name) {
    struct stat ns {};
    const unsigned index = if_nametoindex(name.c_str());
    if (index == 0 || stat("/proc/self/ns/net", &ns) != 0) return std::nullopt;
    return "netns-" + std::to_string(ns.st_dev) + "-" + std::to_string(ns.st_ino) + "-interface-" +
           std::to_string(index);
}

// By the folder's inode: a path has many names. Devices such as /dev/null belong to everybody.
std::optional<std::string> path_resource(const std::string& path) {
    struct stat folder {
    }, file{};
    const std::filesystem::path whole(path);
    const std::string above = whole.has_parent_path() ? whole.parent_path().string() : ".";
    if (stat(above.c_str(), &folder) != 0) return std::nullopt;
    if (stat(path.c_str(), &file) == 0 && !S_ISREG(file.st_mode) && !S_ISSOCK(file.st_mode)) return std::nullopt;
    return "path-" + std::to_string(folder.st_dev) + "-" + std::to_string(folder.st_ino) + "-" +
           whole.filename().string();
}

// The argument `key=value` of a device, of all `key=value,...`.
template <class Take>
void each_argument(const std::string& devargs, Take take) {
    std::istringstream all(devargs);
    for (std::string one; std::getline(all, one, ',');) {
        if (const auto equals = one.find('='); equals != std::string::npos)
            take(one.substr(0, equals), one.substr(equals + 1));
    }
}

// Of one memif socket, several ports with different numbers may be used.
std::optional<std::string> socket_resource(const PortSpec& spec) {
    auto resource = path_resource(spec.argument);
    each_argument(spec.devargs, [&](const std::string& key, const std::string& value) {
        if (resource && spec.kind == PortSpec::Kind::memif && key == "id") *resource += "-id-" + value;
    });
    return resource;
}

std::vector<std::string> device_resources(const std::string& devargs) {
    std::vector<std::string> all;
    each_argument(devargs, [&](const std::string& key, const std::string& value) {
        const bool is_path = kPathKeys.contains(key) || (kInterfaceKeys.contains(key) && value.starts_with('/'));
        if (!is_path && !kInterfaceKeys.contains(key)) return;
        if (const auto resource = is_path ? path_resource(value) : interface_resource(value)) all.push_back(*resource);
    });
    return all;
}

// A folder in `above` that only this user can write, made if it is missing; -1 and errno: there is none. Links are not
// followed: the file behind one would be anybody's.
int own_folder(int above, const char* name, mode_t mode) {
    mkdirat(above, name, mode);
    const int folder = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat found {};
    if (folder < 0) return -1;
    if (fstat(folder, &found) == 0 && found.st_uid == geteuid() && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return folder;
    close(folder);
    errno = EACCES;
    return -1;
}

struct Place {
    std::string above, name;
    [[nodiscard]] std::string path() const { return above + "/" + name + "/ports"; }
};

// An ordinary user, whose engine has capabilities, cannot write where root's locks are.
Place place_of_locks() {
    if (geteuid() == 0) return {"/run", "dutperf"};
    const std::string user = std::to_string(geteuid());
    const std::string runtime = "/run/user/" + user;
    return access(runtime.c_str(), W_OK) == 0 ? Place{runtime, "dutperf"} : Place{"/tmp", "dutperf-" + user};
}

int open_place(const Place& place) {
    const int above = open(place.above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0) return -1;
    const int own = own_folder(above, place.name.c_str(), 0755);
    const int ports = own < 0 ? -1 : own_folder(own, "ports", 0700);
    const int error = errno;
    close(above);
    if (own >= 0) close(own);
    errno = error;
    return ports;
}

std::string command_of(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
    return short_command({std::istreambuf_iterator<char>(file), {}});
}

// Who runs this engine: the command that started it, if that is still there.
std::string this_run() {
    const pid_t parent = getppid();
    const std::string command = command_of(parent);
    const bool by_command = command.find("dutperf") != std::string::npos;
    return "process " + std::to_string(by_command ? parent : getpid()) + " (" +
           (by_command ? command : command_of(getpid())) + ")";
}

// What the file of a lock has: who holds it, or held it until it was killed, and its notes.
std::vector<std::string> lines_of(int file) {
    std::array<char, 8192> text{};
    const ssize_t length = pread(file, text.data(), text.size(), 0);
    std::istringstream all(std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))));
    std::vector<std::string> lines;
    for (std::string line; std::getline(all, line);) lines.push_back(line);
    return lines;
}

std::string holder(int file) {
    const std::vector<std::string> lines = lines_of(file);
    return lines.empty() ? "another process" : lines.front();
}

void append_line(int file, const std::string& text) {
    struct stat about {};
    const std::string line = text + "\n";
    if (fstat(file, &about) == 0) (void)!pwrite(file, line.data(), line.size(), about.st_size);
}

// Two sockets that meet in the engine are the ends of a cable. Devices of DPDK may share what they are given: one
// receives from an interface to which another one sends.
bool are_one(const PortSpec& one, const PortSpec& other) {
    const auto is_device = [](const PortSpec& spec) { return spec.kind == PortSpec::Kind::vdev; };
    if (is_device(one) || is_device(other)) return false;
    if (one.uses_socket() && listens(one) != listens(other)) return false;
    const std::vector<std::string> of_one = resources_of(one), of_other = resources_of(other);
    return std::ranges::find_first_of(of_one, of_other) != of_one.end();
}

void require_different(const std::vector<LockedPort>& ports) {
    for (auto other = ports.begin(); other != ports.end(); ++other) {
        const auto one = std::find_if(ports.begin(), other,
                                      [&](const LockedPort& before) { return are_one(before.spec, other->spec); });
        if (one == other) continue;
        throw Error(
            "bad_request",
            one->side + " and " + other->side + " are the same port, " + other->spec.argument + ": name another one",
            other->side + ".port");
    }
}

bool take_lock(int file) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (std::chrono::steady_clock::now() >= until) return false;
        std::this_thread::sleep_for(kAgain);
    }
    return true;
}

}  // namespace

std::string short_command(std::string command) {
    for (char& one : command) one = static_cast<unsigned char>(one) < ' ' ? ' ' : one;  // notes follow on other lines
    command.erase(command.find_last_not_of(' ') + 1);
    if (command.size() <= kLongestCommand) return command;
    const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(command[at]) & 0xC0U) == 0x80U; };
    std::size_t end = kLongestCommand;
    while (end > 0 && continues(end)) --end;
    return command.substr(0, end) + "...";
}

std::vector<std::string> resources_of(const PortSpec& spec) {
    using Kind = PortSpec::Kind;
    std::optional<std::string> one;
    switch (spec.kind) {
        case Kind::pci: one = "pci-" + spec.argument; break;
        case Kind::kernel:
        case Kind::af_xdp:
        case Kind::af_packet: one = interface_resource(spec.argument); break;
        case Kind::virtio_user:
        case Kind::vhost_user:
        case Kind::memif: one = socket_resource(spec); break;
        case Kind::vdev: return device_resources(spec.argument);
        case Kind::ring:
        case Kind::null: break;
    }
    return one ? std::vector{*one} : std::vector<std::string>{};
}

PortLocks::PortLocks(const std::vector<LockedPort>& ports, const std::string& directory) {
    require_different(ports);
    const Place place = place_of_locks();
    const int folder =
        directory.empty() ? open_place(place) : open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        warning_ = "the ports are not locked against other runs of dutperf: " +
                   (directory.empty() ? place.path() : directory) + ": " + std::strerror(errno);
        return;
    }
    try {
        for (const LockedPort& port : ports) {
            for (const std::string& resource : resources_of(port.spec)) take(port, resource, folder);
        }
    } catch (...) {
        close(folder);
        release();
        throw;
    }
    close(folder);
}

PortLocks::~PortLocks() { release(); }

void PortLocks::release() {
    for (const auto& [resource, file] : locks_) {
        (void)!ftruncate(file, 0);  // all changes are taken back
        close(file);
    }
    locks_.clear();
}

void PortLocks::take(const LockedPort& port, const std::string& resource, int directory) {
    if (locks_.contains(resource)) return;
    const int file = openat(directory, resource.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) {
        warning_ = the_port(port.side) + " is not locked against other runs of dutperf: " + std::strerror(errno);
        return;
    }
    if (!take_lock(file)) {
        const std::string other = holder(file);
        close(file);
        throw Error("port_away",
                    the_port(port.side) + " (" + port.spec.argument + ") is in use by another run of dutperf, " +
                        other + ": wait until it ends, or end it",
                    port.side + ".port");
    }
    locks_.emplace(resource, file);
    if (port.spec.uses_kernel_interface()) take_back_on(port, file);
    if (ftruncate(file, 0) != 0) return;  // the lock holds without it
    append_line(file, this_run());
    if (port.spec.uses_kernel_interface()) append_line(file, note_of_interface(port.spec.argument));
}

// After an engine that was killed.
void PortLocks::take_back_on(const LockedPort& port, int file) {
    std::vector<std::string> notes = lines_of(file);
    if (notes.empty()) return;
    notes.erase(notes.begin());
    for (const std::string& change : take_back(port.spec.argument, notes))
        taken_back_.push_back("an engine that was killed left " + port.spec.argument + " changed: " + change);
}

void PortLocks::note(const PortSpec& spec, const std::string& text) const {
    for (const std::string& resource : resources_of(spec)) {
        if (const auto found = locks_.find(resource); found != locks_.end()) append_line(found->second, text);
    }
}

}  // namespace dutperf
