// SPDX-License-Identifier: Apache-2.0
// Locks on what ports are, whatever their names: one engine at a time sends and receives there. Frames of two runs on
// one port share its link and the DUT behind it, and each run would count the other one's load as the DUT's loss.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "port/port_spec.hpp"

namespace dutperf {

// The names of what a port is on this machine: a card, an interface of a network namespace, a socket, a file. Empty
// for a port that nobody else can have.
std::vector<std::string> resources_of(const PortSpec& spec);

// A command for a message: without control characters, and cut between two characters of UTF-8.
std::string short_command(std::string command);

struct LockedPort {
    std::string side;
    PortSpec spec;
};

// The kernel releases the locks when the process ends, however it ends.
class PortLocks {
public:
    // Waits briefly for another engine that is just ending. `directory`: where the locks are; empty: where only this
    // user can write. Throws Error "port_away" for the field "<side>.port", whose message names the holder;
    // "bad_request" if two of the ports are one.
    explicit PortLocks(const std::vector<LockedPort>& ports, const std::string& directory = {});
    ~PortLocks();
    PortLocks(const PortLocks&) = delete;
    PortLocks& operator=(const PortLocks&) = delete;

    // Adds a note to the locks of a port, for the engine after this one if this one is killed (left_changes.hpp).
    void note(const PortSpec& spec, const std::string& text) const;

    // What engines that were killed had changed on the ports and was taken back: sentences.
    [[nodiscard]] const std::vector<std::string>& taken_back() const { return taken_back_; }

    // Why the ports are not locked, as a sentence; empty: they are.
    [[nodiscard]] const std::string& warning() const { return warning_; }

private:
    void take(const LockedPort& port, const std::string& resource, int directory);
    void take_back_on(const LockedPort& port, int file);
    void release();

    std::map<std::string, int> locks_;  // open files, by resource
    std::string warning_;
    std::vector<std::string> taken_back_;
};

}  // namespace dutperf
