// SPDX-License-Identifier: Apache-2.0
// The kernel's side of cards that stamp frames, made up for an engine of its own, which calls these functions instead
// of the C library's (the linker's --wrap). Each interface that the engine asks for is a card with a PTP clock:
// /dev/ptp80 for the first one, which is the left port's, /dev/ptp81 for the next one. A frame gets the stamp that the
// kernel gives it, as that clock would have said it then. $DUTPERF_FAKE_CARDS has words, with a space between them:
//   driver=every          stamps every frame, whatever it is asked for (I350, E810); the default
//   driver=ptp            offers stamps of received PTPv2 event messages alone, and refuses others (82599)
//   driver=narrows        offers stamps of every frame and gives those of PTPv2 event messages
//   driver=sends_none     offers stamps of sent frames and gives none
//   driver=locked         lets only root switch stamps on
//   one_clock             the ports are of one card
//   drift_ppm=60/-40      by which each card's clock is faster than the tester's
//   offset_ns=0/1000      by which each is ahead of the system's clock at the first comparison
//   step_ns=0/-1000       by which each is set...
//   step_after_s=0.5      ... so long after the first comparison
//   compared=extended     the one way in which clocks are compared (precise, extended, plain, none); otherwise all
//   unanswered_every=3    of the comparisons, that many-th gets no answer
//   no_access             the clocks may not be opened
//   unstamped_sent=3      of the frames to be stamped, that many-th gets no stamp
//   unstamped_received=3  likewise
//   latch_us=50           a card stamps no other frame for so long, until the driver has read the stamp
// If $DUTPERF_FAKE_CARDS_TRUTH names a file, each stamp goes there (see Truth).
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/ptp_clock.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "frame/layout.hpp"
#include "platform/clock.hpp"
#include "tests/fake_card.hpp"

// NOLINTBEGIN(bugprone-reserved-identifier): names that the linker makes
extern "C" {
int __real_open64(const char* path, int flags, ...);
int __real_ioctl(int fd, unsigned long request, ...);
int __real_setsockopt(int fd, int level, int name, const void* value, socklen_t size);
ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
int __real_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);
}

namespace {

using namespace dutperf;

constexpr unsigned kFirstClock = 80;  // no machine has that many of its own
constexpr std::string_view kClocks = "/dev/ptp";
constexpr std::int64_t kNsPerS = 1'000'000'000;
constexpr std::string_view kTagBegins = "\xD7\x54\x50";

constexpr unsigned bit(unsigned number) { return 1U << number; }

// The words of $DUTPERF_FAKE_CARDS.
class Words {
public:
    Words() {
        const char* all = std::getenv("DUTPERF_FAKE_CARDS");
        std::istringstream words(all == nullptr ? "" : all);
        for (std::string word; words >> word;) {
            const std::size_t equals = word.find('=');
            values_[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
        }
    }
    [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
    [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise = "") const {
        const auto found = values_.find(name);
        return found == values_.end() ? otherwise : found->second;
    }
    // The one of a card, of several with a slash between them; 0: not said.
    [[nodiscard]] double number(const std::string& name, unsigned card = 0) const {
        std::istringstream all(text(name));
        std::string one;
        for (unsigned i = 0; i <= card; ++i) {
            if (!std::getline(all, one, '/')) return 0;
        }
        return std::strtod(one.c_str(), nullptr);
    }

private:
    std::map<std::string, std::string> values_;
};
const Words words;
const std::string driver = words.text("driver", "every");
const ClockCalibration calibration;

// The cards' clocks, all of which begin at the first comparison of any, and the kernel's requests to them.
class Clocks {
public:
    [[nodiscard]] const FakeOscillator& oscillator(unsigned number) { return *of(number); }
    bool ask(unsigned number, unsigned long request, void* argument) {
        const int lost = static_cast<int>(words.number("unanswered_every"));
        return requests_.try_emplace(number, of(number), answered(), lost).first->second.ask(request, argument);
    }

private:
    std::shared_ptr<FakeOscillator> of(unsigned number) {
        if (!begin_) {
            begin_ = instant_by(CLOCK_REALTIME);
            hz_ = calibration.hertz();
        }
        std::shared_ptr<FakeOscillator>& one = oscillators_[number];
        if (!one) {
            const double steps_after = words.number("step_after_s") * static_cast<double>(hz_);
            one = std::make_shared<FakeOscillator>(
                FakeOscillator{.hz = hz_,
                               .drift_ppm = words.number("drift_ppm", number),
                               .offset_ns = begin_->ns + std::llround(words.number("offset_ns", number)),
                               .step_ns = std::llround(words.number("step_ns", number)),
                               .begin = begin_->ticks,
                               .steps_at = begin_->ticks + static_cast<Ticks>(steps_after)});
        }
        return one;
    }
    static std::set<unsigned long> answered() {
        static const std::map<std::string, std::set<unsigned long>> ways{
            {"", {PTP_SYS_OFFSET_PRECISE, PTP_SYS_OFFSET_EXTENDED, PTP_SYS_OFFSET}},
            {"precise", {PTP_SYS_OFFSET_PRECISE}},
            {"extended", {PTP_SYS_OFFSET_EXTENDED}},
            {"plain", {PTP_SYS_OFFSET}},
            {"none", {}}};
        return ways.at(words.text("compared"));
    }

    std::optional<ClockInstant> begin_;
    std::uint64_t hz_ = 0;  // the calibration's at `begin_`: a later one differs, and the cards' true times with it
    std::map<unsigned, std::shared_ptr<FakeOscillator>> oscillators_;
    std::map<unsigned, FakeCard> requests_;
};

// Says whether one of the things that it is asked for is left out.
class Every {
public:
    explicit Every(const std::string& name) : every_(static_cast<unsigned>(words.number(name))) {}
    bool skips() { return every_ != 0 && ++asked_ % every_ == 0; }

private:
    unsigned every_, asked_ = 0;
};

// The stamps of one way through a card.
class Stamps {
public:
    explicit Stamps(const std::string& unstamped) : unstamped_(unstamped) {}
    // Whether a frame at this time gets one.
    bool take(double ns) {
        if (ns < free_ns_ || unstamped_.skips()) return false;
        free_ns_ = ns + words.number("latch_us") * 1e3;
        return true;
    }

private:
    Every unstamped_;
    double free_ns_ = 0;  // when the latch is
};

// A card, as its driver sees it.
struct Card {
    unsigned number;
    [[nodiscard]] unsigned clock() const { return words.has("one_clock") ? 0 : number; }
    hwtstamp_config config{};
    Stamps sent{"unstamped_sent"}, received{"unstamped_received"};
};

using Bytes = std::string_view;

std::uint8_t byte_of(Bytes frame, std::size_t at) {
    return at < frame.size() ? static_cast<std::uint8_t>(frame[at]) : 0;
}
unsigned word_of(Bytes frame, std::size_t at) { return byte_of(frame, at) << 8U | byte_of(frame, at + 1); }

// Where a frame has a message of PTP (IEEE 1588), over Ethernet or UDP; nothing: nowhere. The kernel has taken a VLAN
// tag off.
std::optional<std::size_t> ptp_at(Bytes frame) {
    constexpr unsigned kPtpPort = 319;
    const unsigned type = word_of(frame, ethernet::kType);
    if (type == ETH_P_1588) return ethernet::kSize;
    const std::size_t ip = ethernet::kSize;
    const bool is_ipv6 = type == ETH_P_IPV6;
    if (!is_ipv6 && type != ETH_P_IP) return std::nullopt;
    const std::size_t udp = ip + (is_ipv6 ? ipv6::kSize : std::size_t{4} * (byte_of(frame, ip) & 0xFU));
    const bool is_udp = byte_of(frame, ip + (is_ipv6 ? ipv6::kNextHeader : ipv4::kProtocol)) == IPPROTO_UDP;
    if (!is_udp || word_of(frame, udp + udp::kDestinationPort) != kPtpPort) return std::nullopt;
    return udp + udp::kSize;
}

// Whether it is of version 2 and of the event messages, which cards stamp.
bool is_event(Bytes frame) {
    const auto at = ptp_at(frame);
    return at && (byte_of(frame, *at) & 0xFU) < 4 && (byte_of(frame, *at + 1) & 0xFU) == 2;
}

bool is_stamped(const Card& card, Bytes frame) {
    return card.config.rx_filter == HWTSTAMP_FILTER_ALL ||
           (card.config.rx_filter == HWTSTAMP_FILTER_PTP_V2_EVENT && is_event(frame));
}

// The stamps in a file, for tests that compare delays with what they were. For each a line: the card, 0 for the left
// port, "sent" or "received", the time by the tester's clock in ns, and a hash of the frame from
// its tag on, which the DUT leaves as it is.
class Truth {
public:
    void record(const Card& card, bool sent, double ns, Bytes frame) {
        if (file_ == nullptr) return;
        const std::size_t hash = std::hash<Bytes>()(frame.substr(std::min(frame.size(), frame.find(kTagBegins))));
        std::fprintf(file_, "%u %s %.1f %zu\n", card.number, sent ? "sent" : "received", ns, hash);
    }

private:
    static std::FILE* open() {
        const char* path = std::getenv("DUTPERF_FAKE_CARDS_TRUTH");
        std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
        if (file != nullptr) std::setvbuf(file, nullptr, _IOLBF, BUFSIZ);  // tests read it while the engine runs
        return file;
    }
    std::FILE* file_ = open();
};

// What all functions below share; `sharing` guards it.
std::mutex sharing;
Clocks clocks;
Truth truth;
std::map<std::string, Card> cards;  // by interface
std::map<int, unsigned> opened;     // clocks by file descriptor: the last one that had it
std::set<int> with_card_stamps;     // sockets, likewise

Card& card_of(const std::string& interface) {
    return cards.try_emplace(interface, static_cast<unsigned>(cards.size())).first->second;
}

// The card on whose interface a packet socket is.
Card& card_of(int socket) {
    sockaddr_ll address{};
    socklen_t size = sizeof address;
    getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    std::array<char, IF_NAMESIZE> name{};
    if_indextoname(static_cast<unsigned>(address.sll_ifindex), name.data());
    return card_of(name.data());
}

int answer(int error) {
    errno = error;
    return error == 0 ? 0 : -1;
}

void offer(const std::string& interface, ethtool_ts_info& info) {
    info.so_timestamping |= SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
    info.phc_index = static_cast<int>(kFirstClock + card_of(interface).clock());
    info.tx_types = bit(HWTSTAMP_TX_OFF) | bit(HWTSTAMP_TX_ON);
    info.rx_filters =
        bit(HWTSTAMP_FILTER_NONE) | bit(driver == "ptp" ? HWTSTAMP_FILTER_PTP_V2_EVENT : HWTSTAMP_FILTER_ALL);
}

int configure(Card& card, hwtstamp_config& wanted) {
    const bool is_off = wanted.rx_filter == HWTSTAMP_FILTER_NONE, wants_all = wanted.rx_filter == HWTSTAMP_FILTER_ALL;
    if (driver == "locked") return answer(EPERM);
    if (driver == "ptp" && wants_all) return answer(ERANGE);
    const bool only_ptp = driver == "ptp" || driver == "narrows";
    if (!is_off) wanted.rx_filter = only_ptp ? HWTSTAMP_FILTER_PTP_V2_EVENT : HWTSTAMP_FILTER_ALL;
    if (driver == "sends_none") wanted.tx_type = HWTSTAMP_TX_OFF;
    card.config = wanted;
    return 0;
}

// What the kernel's stamps are instead of the card's (SOF_TIMESTAMPING_…).
constexpr unsigned by_kernel(unsigned flags) {
    unsigned instead = 0;
    if ((flags & SOF_TIMESTAMPING_TX_HARDWARE) != 0) instead |= SOF_TIMESTAMPING_TX_SOFTWARE;
    if ((flags & SOF_TIMESTAMPING_RX_HARDWARE) != 0) instead |= SOF_TIMESTAMPING_RX_SOFTWARE;
    if ((flags & SOF_TIMESTAMPING_RAW_HARDWARE) != 0) instead |= SOF_TIMESTAMPING_SOFTWARE;
    return instead;
}
constexpr unsigned kCards = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE;

cmsghdr* control_of(msghdr& message, int type) {
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == type) return one;
    }
    return nullptr;
}

template <class Value>
Value value_in(const cmsghdr* control) {
    Value value;
    std::memcpy(&value, CMSG_DATA(control), sizeof value);
    return value;
}

std::int64_t ns_of(const timespec& time) { return std::int64_t{time.tv_sec} * kNsPerS + time.tv_nsec; }

// A time of the system's clock by the tester's.
Ticks ticks_at(std::int64_t real_ns, const ClockInstant& now) {
    const double ago = static_cast<double>(now.ns - real_ns) * static_cast<double>(calibration.hertz()) / 1e9;
    return now.ticks - static_cast<Ticks>(std::llround(ago));
}

// The stamp of a frame that has left or arrived at a time, which is none if it is not stamped.
scm_timestamping stamp_of(Card& card, bool sent, Ticks at, Bytes frame) {
    const FakeOscillator& oscillator = clocks.oscillator(card.clock());
    const double ns = static_cast<double>(at - oscillator.begin) * 1e9 / static_cast<double>(oscillator.hz);
    if (!sent && (!is_stamped(card, frame) || !card.received.take(ns))) return {};
    truth.record(card, sent, ns, frame);
    const std::int64_t card_ns = oscillator.ns_at(at);
    return {.ts = {{}, {}, {.tv_sec = card_ns / kNsPerS, .tv_nsec = card_ns % kNsPerS}}};
}

// Replaces the kernel's stamp by the card's.
void restamp(Card& card, mmsghdr& message, bool sent, const ClockInstant& now) {
    cmsghdr* control = control_of(message.msg_hdr, SCM_TIMESTAMPING);
    if (control == nullptr) return;
    const Bytes frame(static_cast<const char*>(message.msg_hdr.msg_iov->iov_base), message.msg_len);
    const std::int64_t real_ns = ns_of(value_in<scm_timestamping>(control).ts[0]);
    const scm_timestamping stamps = stamp_of(card, sent, ticks_at(real_ns, now), frame);
    std::memcpy(CMSG_DATA(control), &stamps, sizeof stamps);
}

}  // namespace

extern "C" {

int __wrap_open64(const char* path, int flags, ...) {
    const std::string_view name = path;
    if (!name.starts_with(kClocks)) {
        va_list arguments;
        va_start(arguments, flags);
        const auto mode = va_arg(arguments, mode_t);
        va_end(arguments);
        return __real_open64(path, flags, mode);
    }
    if (words.has("no_access")) return answer(EACCES);
    const int fd = __real_open64("/dev/null", flags);
    const std::lock_guard lock(sharing);
    opened[fd] = static_cast<unsigned>(std::strtoul(path + kClocks.size(), nullptr, 10)) - kFirstClock;
    return fd;
}

int __wrap_ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    const std::lock_guard lock(sharing);
    if (request == PTP_SYS_OFFSET_PRECISE || request == PTP_SYS_OFFSET_EXTENDED || request == PTP_SYS_OFFSET)
        return clocks.ask(opened.at(fd), request, argument) ? 0 : -1;
    const auto* of = static_cast<const ifreq*>(argument);
    if (request == SIOCGHWTSTAMP || request == SIOCSHWTSTAMP) {
        auto& config = *reinterpret_cast<hwtstamp_config*>(of->ifr_data);
        Card& card = card_of(of->ifr_name);
        if (request == SIOCSHWTSTAMP) return configure(card, config);
        config = card.config;
        return 0;
    }
    const int answered = __real_ioctl(fd, request, argument);
    if (request == SIOCETHTOOL && answered == 0) {
        auto& info = *reinterpret_cast<ethtool_ts_info*>(of->ifr_data);
        if (info.cmd == ETHTOOL_GET_TS_INFO) offer(of->ifr_name, info);
    }
    return answered;
}

int __wrap_setsockopt(int fd, int level, int name, const void* value, socklen_t size) {
    if (level != SOL_SOCKET || name != SO_TIMESTAMPING) return __real_setsockopt(fd, level, name, value, size);
    unsigned flags = 0;
    std::memcpy(&flags, value, sizeof flags);
    const std::lock_guard lock(sharing);
    with_card_stamps.erase(fd);
    if ((flags & kCards) == 0) return __real_setsockopt(fd, level, name, value, size);
    with_card_stamps.insert(fd);
    flags = by_kernel(flags);
    return __real_setsockopt(fd, level, name, &flags, sizeof flags);
}

ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
    alignas(cmsghdr) std::array<char, 256> copy{};
    msghdr changed = *message;
    if (message->msg_controllen == 0 || message->msg_controllen > copy.size())
        return __real_sendmsg(fd, message, flags);
    std::memcpy(copy.data(), message->msg_control, message->msg_controllen);
    changed.msg_control = copy.data();
    cmsghdr* wish = control_of(changed, SO_TIMESTAMPING);
    if (wish == nullptr || (value_in<unsigned>(wish) & kCards) == 0) return __real_sendmsg(fd, message, flags);
    {
        const std::lock_guard lock(sharing);
        Card& card = card_of(fd);
        const bool stamped = card.config.tx_type == HWTSTAMP_TX_ON &&
                             card.sent.take(static_cast<double>(instant_by(CLOCK_MONOTONIC_RAW).ns));
        const unsigned wanted = stamped ? by_kernel(value_in<unsigned>(wish)) : 0;
        std::memcpy(CMSG_DATA(wish), &wanted, sizeof wanted);
    }
    return __real_sendmsg(fd, &changed, flags);
}

int __wrap_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
    const int taken = __real_recvmmsg(fd, messages, count, flags, timeout);
    const std::lock_guard lock(sharing);
    if (taken <= 0 || !with_card_stamps.contains(fd)) return taken;
    const ClockInstant now = instant_by(CLOCK_REALTIME);
    Card& card = card_of(fd);
    for (int i = 0; i < taken; ++i) restamp(card, messages[i], (flags & MSG_ERRQUEUE) != 0, now);
    return taken;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
