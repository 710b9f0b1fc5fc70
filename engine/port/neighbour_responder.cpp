// SPDX-License-Identifier: Apache-2.0
#include "port/neighbour_responder.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "platform/ending.hpp"
#include "port/burst.hpp"

namespace dutperf {

namespace {

constexpr std::chrono::milliseconds kAskInterval{200};
constexpr std::chrono::microseconds kPause{50};
constexpr std::size_t kProbesAtOnce = 32;  // then a millisecond for the queues on the way
constexpr std::chrono::milliseconds kProbesPause{1};
constexpr std::chrono::milliseconds kProbesAnswered{20};  // what comes later is seen in the trial

template <class Address>
std::vector<AddressRange<Address>> take_new(const std::vector<AddressRange<Address>>& ranges,
                                            std::vector<AddressRange<Address>>& known) {
    std::vector<AddressRange<Address>> unknown;
    for (const AddressRange<Address>& one : ranges) {
        if (std::ranges::find(known, one) != known.end()) continue;
        unknown.push_back(one);
        known.push_back(one);
    }
    return unknown;
}

std::string in_words(const std::set<std::uint16_t>& vlans) {
    std::string words;
    for (const std::uint16_t vlan : vlans)
        words += (words.empty() ? "" : ", ") + (vlan == 0 ? "without a tag" : "in VLAN " + std::to_string(vlan));
    return words;
}

}  // namespace

rte_mbuf* make_frame(rte_mempool* pool, const FrameBytes& bytes) {
    rte_mbuf* frame = rte_pktmbuf_alloc(pool);
    if (frame == nullptr) return nullptr;
    char* room = rte_pktmbuf_append(frame, static_cast<std::uint16_t>(bytes.size()));
    std::ranges::copy(bytes, room);
    return frame;
}

bool NeighbourResponder::resolve(std::chrono::milliseconds timeout, const std::vector<NeighbourResponder*>& all) {
    const bool all_answered = resolve_gateways(timeout, all);
    if (all_answered && has_gateway()) ask_for_ranges();
    return all_answered;
}

bool NeighbourResponder::resolve_gateways(std::chrono::milliseconds timeout,
                                          const std::vector<NeighbourResponder*>& all) {
    if (has_gateway()) send_in_vlans(address_probes(host_));
    wait_for_all();
    heard_.clear();
    if (gateway_.mac) {
        ask();  // an answer from another MAC address is evidence, none is nothing
        return true;
    }
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + timeout;
    std::size_t left = waiting();
    for (auto next = Clock::now(); left != 0 && Clock::now() < deadline; std::this_thread::sleep_for(kPause)) {
        require_not_ending();
        if (Clock::now() >= next) {
            ask();
            next += kAskInterval;
        }
        for (NeighbourResponder* one : all) one->serve();
        if (std::exchange(left, waiting()) != left) next = Clock::now();  // on to the next VLAN
    }
    return left == 0;
}

// Once the gateways' MAC addresses are known: some answer for every address (proxy ARP). A DUT may limit how much ARP
// it takes, so this is not done before each trial.
void NeighbourResponder::ask_for_ranges() {
    const std::vector<IpAddress> targets = to_ask_for();
    if (targets.empty()) return;
    const std::uint64_t sent_before = sent_at_port(), counted_before = port_.counters().driver_sent;
    const auto serve_for = [this](std::chrono::milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        for (; std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(kPause)) serve();
    };
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (i != 0 && i % kProbesAtOnce == 0) serve_for(kProbesPause);
        send_in_vlans({address_probe(host_, targets[i])});
    }
    serve_for(kProbesAnswered);
    port_.transmit_ledger().add_uncounted(sent_at_port() - sent_before, counted_before, port_.counters().driver_sent);
}

std::vector<IpAddress> NeighbourResponder::to_ask_for() {
    AddressRanges unasked;
    unasked.ipv4 = take_new(host_.others.ipv4, asked_.ipv4);
    unasked.ipv6 = take_new(host_.others.ipv6, asked_.ipv6);
    std::vector<IpAddress> targets = sample(unasked, kMostAsked / std::max<std::size_t>(host_.vlans.size(), 1));
    for (const IpAddress& one : claimed_) {
        if (std::ranges::find(targets, one) == targets.end()) targets.push_back(one);
    }
    std::erase_if(targets, [this](const IpAddress& one) { return is_own(host_, one) || !answers_for(host_, one); });
    return targets;
}

void NeighbourResponder::remember(const NeighbourEvidence& evidence) {
    for (const NeighbourEvidence::Conflict& one : evidence.conflicts) {
        const bool is_known = std::ranges::find(claimed_, one.address) != claimed_.end();
        if (one.of_range && !is_known && claimed_.size() < kMostAsked) claimed_.push_back(one.address);
    }
}

AddressRanges NeighbourResponder::addresses() const {
    AddressRanges ranges = always_;
    if (host_.ipv4) ranges.add(ip_of(*host_.ipv4));
    if (host_.ipv6) ranges.add(ip_of(*host_.ipv6));
    return ranges;
}

void NeighbourResponder::answer_for(const AddressRanges& of_trial) {
    host_.others = always_;
    host_.others.add(of_trial);
}

std::set<Mac> NeighbourResponder::gateway_macs() const {
    if (gateway_.mac) return {*gateway_.mac};
    std::set<Mac> macs;
    for (const Found* found : {&found4_, &found6_}) {
        for (const auto& [vlan, mac] : found->macs) macs.insert(mac);
    }
    return macs;
}

WatchedHost NeighbourResponder::watched() const { return {.host = host_, .macs = gateway_macs()}; }

NeighbourEvidence NeighbourResponder::take_conflicts() {
    NeighbourEvidence evidence;
    // of the first claims the gateway's MAC address was not known yet
    for (const NeighbourEvidence::Conflict& claim : std::exchange(claims_, {}).conflicts)
        add_claim(claim, host_, gateway_macs(), evidence);
    if (gateway_.ipv4) found4_.add_others(ip_of(*gateway_.ipv4), gateway_.mac, evidence);
    if (gateway_.ipv6) found6_.add_others(ip_of(*gateway_.ipv6), gateway_.mac, evidence);
    return evidence;
}

std::size_t NeighbourResponder::waiting() const { return found4_.waiting.size() + found6_.waiting.size(); }

bool NeighbourResponder::Found::ask_next() {
    if (!waiting.empty()) asked_in = *waiting.begin();
    return !waiting.empty();
}

void NeighbourResponder::Found::take(std::uint16_t vlan, const Mac& mac) {
    macs[vlan] = mac;
    waiting.erase(vlan);
    ++answers[mac];
}

void NeighbourResponder::Found::wait_for(const std::set<std::uint16_t>& vlans) {
    waiting = vlans;
    answers.clear();
}

// A gateway may have a MAC address of its own in each VLAN.
void NeighbourResponder::Found::add_others(const IpAddress& gateway, const std::optional<Mac>& given,
                                           NeighbourEvidence& to) const {
    for (const auto& [mac, messages] : answers) {
        if (given && mac != *given)
            to.add(NeighbourEvidence::Moved{.gateway = gateway, .mac = mac, .messages = messages, .given = given});
        if (given) continue;
        if (std::ranges::any_of(macs, [&mac = mac](const auto& used) { return used.second == mac; })) continue;
        to.add(NeighbourEvidence::Conflict{
            .address = gateway, .is_gateway = true, .holder = macs.begin()->second, .mac = mac, .messages = messages});
    }
}

std::optional<Mac> NeighbourResponder::Found::in(std::uint16_t vlan) const {
    const auto found = macs.contains(vlan) ? macs.find(vlan) : macs.begin();
    return found != macs.end() ? std::optional(found->second) : std::nullopt;
}

void NeighbourResponder::wait_for_all() {
    std::set<std::uint16_t> vlans(host_.vlans.begin(), host_.vlans.end());
    if (vlans.empty()) vlans = {0};
    if (gateway_.ipv4) found4_.wait_for(vlans);
    if (gateway_.ipv6) found6_.wait_for(vlans);
}

// The VLAN in which the sender of a reply was asked. A host that asks without a tag takes every reply, and one whose
// driver hides tags takes it for that of the VLAN in which it asks at present.
std::uint16_t NeighbourResponder::asked_in(const Found& found, const std::uint8_t* frame, std::size_t length) const {
    if (host_.vlans.empty()) return 0;
    const std::uint16_t vlan = vlan_of(frame, length);
    return vlan != 0 ? vlan : found.asked_in;
}

void NeighbourResponder::announce() {
    if (host_.ipv4) {
        send(arp_request(host_, *host_.ipv4));
    } else if (host_.ipv6) {
        send(neighbour_solicitation(host_, *host_.ipv6));
    }
}

void NeighbourResponder::report_groups() {
    if (has_gateway()) send_in_vlans(listener_reports(host_));
}

void NeighbourResponder::send_in_vlans(const std::vector<FrameBytes>& frames) {
    const std::vector<std::uint16_t> untagged{0};
    for (const FrameBytes& frame : frames) {
        for (const std::uint16_t vlan : host_.vlans.empty() ? untagged : host_.vlans) send(in_vlan(frame, vlan));
    }
}

Mac NeighbourResponder::dut_mac(bool ipv6, const Mac& direct, std::uint16_t vlan) const {
    if (gateway_.mac) return *gateway_.mac;
    const Found &wanted = ipv6 ? found6_ : found4_, &other = ipv6 ? found4_ : found6_;
    return wanted.in(vlan).value_or(other.in(vlan).value_or(direct));
}

template <class Take>
void NeighbourResponder::receive(const Take& take) {
    for (std::uint16_t queue = 0; queue < port_.queues(); ++queue) {
        std::array<rte_mbuf*, 32> frames{};
        const std::uint16_t count = receive_burst(port_.queue(queue), frames.data(), frames.size());
        for (std::uint16_t i = 0; i < count; ++i)
            take(rte_pktmbuf_mtod(frames[i], const std::uint8_t*), rte_pktmbuf_data_len(frames[i]));
        rte_pktmbuf_free_bulk(frames.data(), count);
    }
}

void NeighbourResponder::serve() {
    receive([this](const std::uint8_t* frame, std::size_t length) {
        for (NeighbourResponder* host : at_port_) {
            if (is_seen_by(host->host_, frame, length)) host->answer(frame, length);
        }
    });
}

std::uint64_t NeighbourResponder::sent_at_port() const {
    std::uint64_t sent = 0;
    for (const NeighbourResponder* host : at_port_) sent += host->sent_;
    return sent;
}

void NeighbourResponder::answer(const std::uint8_t* frame, std::size_t length) {
    learn(frame, length);
    if (const auto message = read_neighbour_message(frame, length)) {
        if (const auto claim = claim_in(*message, host_)) add_claim(*claim, host_, gateway_macs(), claims_);
        if (!is_of_tester(host_, message->mac)) heard_.insert(vlan_of(frame, length));
    }
    for (const FrameBytes& reply : answers(host_, frame, length)) send(reply);
}

std::string NeighbourResponder::why_silent(std::chrono::milliseconds patience) {
    const std::set<std::uint16_t>& asked = found4_.waiting.empty() ? found6_.waiting : found4_.waiting;
    const std::set<std::uint16_t> own(host_.vlans.begin(), host_.vlans.end());
    std::set<std::uint16_t> others = port_.hides_outer_tag() ? std::set<std::uint16_t>{} : heard_;
    for (const std::uint16_t vlan : own.empty() ? std::set<std::uint16_t>{0} : own) others.erase(vlan);
    std::string why = own.empty() ? "" : "; it was asked " + in_words(asked);
    if (!own.empty() && answers_untagged(patience)) return why + ", and answers without a tag";
    if (!others.empty()) why += "; ARP and Neighbour Discovery arrive there " + in_words(others);
    return why;
}

// A message that it answers is not learned from: no frames are sent to a gateway that way.
bool NeighbourResponder::answers_untagged(std::chrono::milliseconds patience) {
    serve();  // late answers to what was asked before
    const bool arp = !found4_.waiting.empty();
    send(arp ? arp_request(host_, *gateway_.ipv4) : neighbour_solicitation(host_, *gateway_.ipv6));
    bool is_answered = false;
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (; !is_answered && std::chrono::steady_clock::now() < deadline; std::this_thread::sleep_for(kPause)) {
        receive([&](const std::uint8_t* frame, std::size_t length) {
            const auto mac =
                arp ? arp_reply_mac(*gateway_.ipv4, frame, length) : advertised_mac(*gateway_.ipv6, frame, length);
            is_answered = is_answered || (mac && vlan_of(frame, length) == 0);
        });
    }
    return is_answered;
}

void NeighbourResponder::handle(const std::uint8_t* frame, std::size_t length) {
    learn(frame, length);
    if (gateway_.ipv4) {
        if (const auto mac = arp_requester_mac(*gateway_.ipv4, frame, length))
            found4_.take(asked_in(found4_, frame, length), *mac);
    }
    if (gateway_.ipv6) {
        if (const auto mac = solicitor_mac(*gateway_.ipv6, frame, length))
            found6_.take(asked_in(found6_, frame, length), *mac);
    }
    for (const FrameBytes& reply : answers(host_, frame, length)) send(reply);
}

void NeighbourResponder::ask() {
    if (host_.ipv4 && gateway_.ipv4 && found4_.ask_next())
        send(in_vlan(arp_request(host_, *gateway_.ipv4), found4_.asked_in));
    if (host_.ipv6 && gateway_.ipv6 && found6_.ask_next())
        send(in_vlan(neighbour_solicitation(host_, *gateway_.ipv6), found6_.asked_in));
}

void NeighbourResponder::send(const FrameBytes& frame) {
    rte_mbuf* buffer = make_frame(pool_, frame);
    if (buffer == nullptr) return;
    if (transmit_burst({port_.id()}, &buffer, 1) == 1) {
        ++sent_;
    } else {
        rte_pktmbuf_free(buffer);
    }
}

void NeighbourResponder::learn(const std::uint8_t* frame, std::size_t length) {
    if (gateway_.ipv4) {
        if (const auto mac = arp_reply_mac(*gateway_.ipv4, frame, length))
            found4_.take(asked_in(found4_, frame, length), *mac);
    }
    if (gateway_.ipv6) {
        if (const auto mac = advertised_mac(*gateway_.ipv6, frame, length))
            found6_.take(asked_in(found6_, frame, length), *mac);
    }
}

}  // namespace dutperf
