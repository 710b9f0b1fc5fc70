// SPDX-License-Identifier: Apache-2.0
// What nobody in the guest does to a card and its clock.
// card-clock free INTERFACE: frees the register of received frames' time stamps of QEMU's 82576 as soon as the driver
// has read it. Real cards free it by that; QEMU's when RXSATRH is read, which no driver does.
// card-clock step CLOCK NS: sets a clock (/dev/ptpN) forward, as ptp4l does.
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timex.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

namespace {

constexpr std::size_t kRegisters = 0x20000, kRxsatrh = 0xB630;
constexpr std::uint16_t kPtp = 0x88F7;

int fail(const char* what) {
    std::perror(what);
    return 1;
}

int free_stamps(const std::string& interface) {
    const int bar = open(("/sys/class/net/" + interface + "/device/resource0").c_str(), O_RDWR | O_SYNC);
    void* mapped = mmap(nullptr, kRegisters, PROT_READ | PROT_WRITE, MAP_SHARED, bar, 0);
    if (mapped == MAP_FAILED) return fail("resource0");
    const auto* rxsatrh = reinterpret_cast<volatile std::uint32_t*>(static_cast<char*>(mapped) + kRxsatrh);
    const sched_param before_others{.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &before_others);
    const int messages = socket(AF_PACKET, SOCK_RAW, htons(kPtp));
    const unsigned stamps = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(kPtp);
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
    if (setsockopt(messages, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps) != 0 ||
        bind(messages, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return fail("socket");
    while (true) {
        static_cast<void>(*rxsatrh);
        alignas(cmsghdr) char control[256];
        msghdr message{};
        do {  // only frames with a stamp had the register
            message.msg_control = control;
            message.msg_controllen = sizeof control;
            if (recvmsg(messages, &message, 0) < 0) return fail("recvmsg");
        } while (CMSG_FIRSTHDR(&message) == nullptr);
    }
}

int step(const char* clock, long ns) {
    timex change{};
    change.modes = ADJ_SETOFFSET | ADJ_NANO;
    change.time.tv_usec = ns;
    const clockid_t id = ~static_cast<clockid_t>(open(clock, O_RDWR)) << 3 | 3;  // FD_TO_CLOCKID of clock_gettime(3)
    return clock_adjtime(id, &change) < 0 ? fail(clock) : 0;
}

}  // namespace

int main(int count, char** words) {
    const std::string what = count > 1 ? words[1] : "";
    if (what == "free" && count == 3) return free_stamps(words[2]);
    if (what == "step" && count == 4) return step(words[2], std::stol(words[3]));
    return 2;
}
