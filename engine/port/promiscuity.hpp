// SPDX-License-Identifier: Apache-2.0
// Promiscuous mode of a kernel interface, which ends with the process. DPDK's drivers for kernel sockets set a flag of
// the interface instead, which would stay.
#pragma once

#include <string>

namespace dutperf {

class Promiscuity {
public:
    explicit Promiscuity(unsigned interface_index);
    ~Promiscuity();
    Promiscuity(const Promiscuity&) = delete;
    Promiscuity& operator=(const Promiscuity&) = delete;

    // Why the interface is not promiscuous; empty: it is.
    [[nodiscard]] const std::string& error() const { return error_; }

private:
    int socket_;  // receives nothing
    std::string error_;
};

// Sets the flag of the interface, as `ip link set NAME promisc on` does.
void set_promiscuous_flag(const std::string& interface);

}  // namespace dutperf
