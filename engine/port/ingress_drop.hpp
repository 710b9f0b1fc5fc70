// SPDX-License-Identifier: Apache-2.0
// Keeps the frames that a packet socket receives from this machine's own network stack, which would answer them,
// forward them back to the DUT, and count those that it does not know as dropped.
#pragma once

#include <string>

namespace dutperf {

// Drops the frames that an interface receives, behind the packet sockets: by a table of nftables that belongs to this
// process and ends with it (Linux 5.12).
class IngressDrop {
public:
    explicit IngressDrop(const std::string& interface);
    ~IngressDrop();
    IngressDrop(const IngressDrop&) = delete;
    IngressDrop& operator=(const IngressDrop&) = delete;

    // Why the kernel did not take the table; empty: it did.
    [[nodiscard]] const std::string& error() const { return error_; }

private:
    int netlink_;
    std::string error_;
};

// What this machine's stack would do to the DUT with frames that it receives on an interface: a part of a sentence.
// Empty: nothing.
std::string what_the_stack_does(const std::string& interface);

}  // namespace dutperf
