// SPDX-License-Identifier: Apache-2.0
#include "port/neighbour_watch.hpp"

#include <algorithm>
#include <iterator>

#include "port/vxlan.hpp"

namespace dutperf {

namespace {

bool is_gateway(const Gateway& gateway, const IpAddress& address) {
    return address.is_ipv6 ? gateway.ipv6 == address.bytes : gateway.ipv4 == address.ipv4();
}

// The kept one that says the same as `one`; if there is none, `one` is kept while there is room, and nullptr returned.
template <class One, class Same>
One* known_or_kept(std::vector<One>& kept, const One& one, const Same& same) {
    const auto known = std::ranges::find_if(kept, [&](const One& other) { return same(other, one); });
    if (known != kept.end()) return &*known;
    if (kept.size() < NeighbourEvidence::kMostNamed) kept.push_back(one);
    return nullptr;
}

}  // namespace

void NeighbourEvidence::add(const Unanswered& one) {
    requests += one.requests;
    const auto same = [](const Unanswered& a, const Unanswered& b) { return a.target == b.target; };
    if (Unanswered* known = known_or_kept(unanswered, one, same)) {
        known->requests += one.requests;
        known->asker = one.asker;
    }
}

void NeighbourEvidence::add(const Moved& one) {
    const auto same = [](const Moved& a, const Moved& b) { return a.gateway == b.gateway && a.mac == b.mac; };
    if (Moved* known = known_or_kept(moved, one, same)) known->messages += one.messages;
}

void NeighbourEvidence::add(const Conflict& one) {
    const auto same = [](const Conflict& a, const Conflict& b) { return a.address == b.address && a.mac == b.mac; };
    if (Conflict* known = known_or_kept(conflicts, one, same)) known->messages += one.messages;
}

void NeighbourEvidence::add(const NeighbourEvidence& other) {
    std::uint64_t named = 0;
    for (const Unanswered& one : other.unanswered) {
        add(one);
        named += one.requests;
    }
    requests += other.requests - named;
    for (const Moved& one : other.moved) add(one);
    for (const Conflict& one : other.conflicts) add(one);
}

std::optional<NeighbourEvidence::Conflict> claim_in(const NeighbourMessage& message, const Host& host) {
    if (message.sender.is_unspecified() || !answers_for(host, message.sender)) return std::nullopt;
    if (is_of_tester(host, message.mac)) return std::nullopt;
    return NeighbourEvidence::Conflict{.address = message.sender,
                                       .of_range = !is_own(host, message.sender),
                                       .holder = host.mac,
                                       .mac = message.mac,
                                       .messages = 1};
}

void add_claim(NeighbourEvidence::Conflict claim, const Host& host, const std::set<Mac>& gateways,
               NeighbourEvidence& to) {
    claim.by_dut = gateways.contains(claim.mac) || claim.mac == host.dut.mac;
    if (!claim.by_dut || is_own(host, claim.address)) to.add(claim);
}

std::vector<FrameBytes> NeighbourWatch::take(const std::uint8_t* frame, std::size_t length) {
    if (const std::size_t inner_at = tunnelled_at(frame, length); inner_at != 0)
        return take_in_tunnel(frame, length, inner_at);
    const auto message = read_neighbour_message(frame, length);
    if (!message && !is_listener_query(frame, length)) return {};
    std::vector<FrameBytes> replies;
    bool is_known = !message || expects_no_answer(*message);
    for (const WatchedHost& one : hosts_) {
        if (!is_seen_by(one.host, frame, length)) continue;
        if (message && note(*message, one)) is_known = true;
        std::ranges::move(answers(one.host, frame, length), std::back_inserter(replies));
    }
    if (!is_known) {
        evidence_.add(
            NeighbourEvidence::Unanswered{.target = message->target, .asker = message->sender, .requests = 1});
    }
    return replies;
}

// The tester's own requests are answered at the port that they are for, in VLANs too that no host of this one is in.
bool NeighbourWatch::expects_no_answer(const NeighbourMessage& message) const {
    return message.wants_no_answer() ||
           std::ranges::any_of(hosts_, [&](const WatchedHost& one) { return is_of_tester(one.host, message.mac); });
}

std::vector<FrameBytes> NeighbourWatch::take_in_tunnel(const std::uint8_t* frame, std::size_t length,
                                                       std::size_t inner_at) {
    const std::uint8_t* const inner = frame + inner_at;
    const auto message = read_neighbour_message(inner, length - inner_at);
    if (!message || message->wants_no_answer()) return {};
    std::vector<FrameBytes> replies;
    bool is_asked = false;
    for (const WatchedHost& one : hosts_) {
        if (!ends_tunnel(one.host, frame, length)) continue;
        is_asked = true;
        Host host = one.host;
        host.vlans.clear();  // those are of the cable
        for (const FrameBytes& reply : answers(host, inner, length - inner_at))
            replies.push_back(in_tunnel_of(host, frame, length, reply));
    }
    if (is_asked && replies.empty())
        evidence_.add(
            NeighbourEvidence::Unanswered{.target = message->target, .asker = message->sender, .requests = 1});
    return replies;
}

bool NeighbourWatch::note(const NeighbourMessage& message, const WatchedHost& of) {
    const auto& [host, macs] = of;
    if (!macs.empty() && is_gateway(host.dut, message.sender) && !macs.contains(message.mac))
        evidence_.add(NeighbourEvidence::Moved{
            .gateway = message.sender, .mac = message.mac, .messages = 1, .given = host.dut.mac});
    if (const auto claim = claim_in(message, host)) add_claim(*claim, host, macs, evidence_);
    return message.is_request && (is_gateway(host.dut, message.target) || answers_for(host, message.target));
}

}  // namespace dutperf
