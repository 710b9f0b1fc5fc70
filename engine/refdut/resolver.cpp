// SPDX-License-Identifier: Apache-2.0
#include "refdut/resolver.hpp"

#include <algorithm>

#include "frame/bytes.hpp"
#include "pace/due_after.hpp"

namespace dutperf {

namespace {

constexpr std::uint32_t kTtlWithoutSoaS = 600;  // RFC 6147 5.1.7
constexpr std::size_t kCutOff = 5;              // bytes, of the last record's data or of the OPT record
constexpr std::uint8_t kLatestEdns = 0;

// RFC 4343: names are compared without the case of their letters. Sizes of labels are below the letters.
void to_lower_case(dns::Bytes name, std::string& to) {
    to.resize(name.size());
    std::ranges::transform(name, to.begin(), [](std::uint8_t byte) {
        return static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte | 0x20U : byte);
    });
}

std::optional<dns::Rcode> rcode_of(Wrong wrong) {
    switch (wrong) {
        case Wrong::servfail: return dns::Rcode::servfail;
        case Wrong::refused: return dns::Rcode::refused;
        case Wrong::nxdomain: return dns::Rcode::nxdomain;
        default: return std::nullopt;
    }
}

bool has_no_records(Wrong wrong) {
    return rcode_of(wrong).has_value() || wrong == Wrong::nodata || wrong == Wrong::truncated;
}

// Another prefix: no length that RFC 6052 allows is below 32 bits, so this bit belongs to it.
Ipv6 with_other_prefix(Ipv6 address) {
    address[3] ^= 1U;
    return address;
}

}  // namespace

Resolver::Resolver(const Prefix<Ipv6>& prefix, const Dns64Properties& properties, std::uint64_t clock_hz,
                   ResolverOutput& output)
    : map_({}, prefix),
      clock_hz_(clock_hz),
      output_(output),
      cache_(properties.cache_names, clock_hz),
      pending_(properties.pending),
      wrong_(properties.wrong_every) {}

void Resolver::query(Ticks now, const DnsClient& client, dns::Bytes message) {
    ++counts_.queries;
    const auto header = dns::read_header(message);
    if (!header || header->is(dns::header::kResponse)) {
        ++counts_.malformed;
        return;
    }
    if (header->opcode() != 0) {
        ++counts_.unsupported;
        return reject(now, client, message, dns::Rcode::notimp);
    }
    const auto read = dns::read_message(message);
    if (!read) {
        ++counts_.malformed;
        return reject(now, client, message, dns::Rcode::formerr);
    }
    ClientQuery query{.client = client,
                      .id = header->id,
                      .recursion_desired = header->is(dns::header::kRecursionDesired),
                      .edns = std::nullopt,
                      .name = read->question.name};
    if (read->edns) query.edns = dns::Edns{.dnssec_ok = read->edns->dnssec_ok};
    if (read->question.type != dns::type::kAaaa || read->question.klass != dns::kClassIn) {
        ++counts_.unsupported;
        return reject(now, client, message, dns::Rcode::notimp);
    }
    if (read->edns && read->edns->version > kLatestEdns) return reply(now, query, {.rcode = dns::Rcode::badvers});
    resolve(now, query);
}

void Resolver::resolve(Ticks now, const ClientQuery& query) {
    to_lower_case(query.name, key_);
    if (const AnswerCache::Entry* cached = cache_.find(key_, now)) {
        ++counts_.cache_hits;
        return answer_addresses(now, query, cached->answer, cache_.remaining_ttl_s(*cached, now));
    }
    PendingQuery* pending = pending_.add(query);
    if (pending == nullptr) {
        ++counts_.pending_full;
        return;
    }
    ask(now, *pending, dns::type::kAaaa);
}

void Resolver::ask(Ticks now, PendingQuery& pending, std::uint16_t type) {
    pending_.ask(pending, type);
    send(now, pending);
}

void Resolver::send(Ticks now, PendingQuery& pending) {
    ++pending.tries;
    ++(pending.type == dns::type::kA ? counts_.asked_a : counts_.asked_aaaa);
    const std::size_t size = dns::write_query(
        {.id = pending.id, .name = pending.name, .type = pending.type, .recursion_desired = false}, room_);
    pending_.await(pending, now + ticks_of(kUpstreamTimeoutNs, clock_hz_));
    output_.ask(now, pending.port, dns::Bytes(room_).first(size));
}

void Resolver::expire(Ticks now) {
    while (PendingQuery* pending = pending_.next_overdue(now)) {
        if (pending->tries < kUpstreamTries) {
            ++counts_.retries;
            send(now, *pending);
        } else {
            ++counts_.timed_out;
            fail(now, *pending, dns::Rcode::servfail);
        }
    }
}

void Resolver::response(Ticks now, std::uint16_t port, dns::Bytes message) {
    const auto header = dns::read_header(message);
    PendingQuery* pending = header ? pending_.find(port, header->id) : nullptr;
    const auto read = pending != nullptr ? read_response(message, *pending) : std::nullopt;
    if (!read) {
        ++counts_.unexpected;
        return;
    }
    if (pending->type == dns::type::kAaaa) return take_aaaa(now, *pending, *read);
    take_a(now, *pending, *read);
}

// Also collects the addresses in found_, IPv4 ones translated. Nothing if it does not answer what was asked.
std::optional<dns::Message> Resolver::read_response(dns::Bytes message, PendingQuery& pending) {
    found_.addresses.clear();
    found_.ttl_s = UINT32_MAX;
    std::uint32_t soa_ttl_s = kTtlWithoutSoaS;
    const auto take = [&](const dns::Record& record) {
        if (record.section == dns::Section::authority && record.type == dns::type::kSoa) soa_ttl_s = record.ttl_s;
        if (record.section != dns::Section::answer || record.type != pending.type || record.klass != dns::kClassIn ||
            found_.addresses.size() == kMostAddresses)
            return;
        if (record.type == dns::type::kAaaa && record.data.size() == sizeof(Ipv6))
            found_.addresses.push_back(read_address<Ipv6>(record.data.data()));
        else if (record.type == dns::type::kA && record.data.size() == sizeof(Ipv4))
            found_.addresses.push_back(map_.to_ipv6(read_address<Ipv4>(record.data.data())).value_or(Ipv6{}));
        else
            return;
        found_.ttl_s = std::min(found_.ttl_s, record.ttl_s);
    };
    const auto read = dns::read_message(message, take);
    if (!read || !read->header.is(dns::header::kResponse) || read->question.type != pending.type ||
        read->question.klass != dns::kClassIn || !dns::are_equal_names(read->question.name, pending.name))
        return std::nullopt;
    if (pending.type == dns::type::kAaaa) pending.negative_ttl_s = soa_ttl_s;
    return read;
}

// RFC 6147 5.1.2: NXDOMAIN is the answer, any other error is treated as an empty answer.
void Resolver::take_aaaa(Ticks now, PendingQuery& pending, const dns::Message& message) {
    if (message.rcode() == dns::Rcode::nxdomain) return fail(now, pending, dns::Rcode::nxdomain);
    if (message.rcode() == dns::Rcode::noerror && !found_.addresses.empty()) return finish(now, pending, false);
    ask(now, pending, dns::type::kA);
}

void Resolver::take_a(Ticks now, PendingQuery& pending, const dns::Message& message) {
    const bool is_cut = message.header.is(dns::header::kTruncated);  // there is no TCP to ask again
    if (message.rcode() == dns::Rcode::nxdomain) return fail(now, pending, dns::Rcode::nxdomain);
    if (message.rcode() != dns::Rcode::noerror || is_cut) return fail(now, pending, dns::Rcode::servfail);
    if (found_.addresses.empty()) return fail(now, pending, dns::Rcode::noerror);
    found_.ttl_s = std::min(found_.ttl_s, pending.negative_ttl_s);  // RFC 6147 5.1.7
    finish(now, pending, true);
}

void Resolver::finish(Ticks now, PendingQuery& pending, bool is_synthesised) {
    found_.is_synthesised = is_synthesised;
    to_lower_case(pending.name, key_);
    cache_.insert(key_, found_, now);
    answer_addresses(now, pending.query(), found_, found_.ttl_s);
    pending_.remove(pending);
}

void Resolver::fail(Ticks now, PendingQuery& pending, dns::Rcode rcode) {
    reply(now, pending.query(), {.rcode = rcode});
    pending_.remove(pending);
}

void Resolver::answer_addresses(Ticks now, const ClientQuery& query, const AddressAnswer& answer, std::uint32_t ttl_s) {
    ++(answer.is_synthesised ? counts_.synthesised : counts_.existing);
    const auto wrong = wrong_.next(answer.is_synthesised);
    std::array<Ipv6, kMostAddresses> addresses{};
    const std::size_t count = answer.addresses.size();
    std::ranges::copy(answer.addresses, addresses.begin());
    for (Ipv6& one : std::span(addresses).first(count)) {
        if (wrong == Wrong::wrong_prefix) one = with_other_prefix(one);
        if (wrong == Wrong::wrong_address) one = with_other_address(one, answer.is_synthesised);
    }
    dns::Reply made{.ttl_s = ttl_s, .aaaa = std::span(addresses).first(count)};
    if (wrong && has_no_records(*wrong)) made = {.rcode = rcode_of(*wrong).value_or(dns::Rcode::noerror)};
    reply(now, query, made, wrong);
}

Ipv6 Resolver::with_other_address(const Ipv6& address, bool is_synthesised) const {
    Ipv6 other = address;
    other.back() ^= 1U;
    if (!is_synthesised) return other;
    auto embedded = map_.to_ipv4(address).value_or(Ipv4{});
    embedded.back() ^= 1U;
    return map_.to_ipv6(embedded).value_or(other);
}

void Resolver::reply(Ticks now, const ClientQuery& query, dns::Reply reply, std::optional<Wrong> wrong) {
    reply.recursion_available = true;
    reply.edns = query.edns;
    dns::write_query(
        {.id = query.id, .name = query.name, .recursion_desired = query.recursion_desired, .edns = std::nullopt},
        room_);
    const auto question = dns::read_question(room_);
    std::size_t size = question ? dns::write_reply(room_, *question, reply) : 0;
    std::uint8_t& flags = room_[dns::header::kFlags];
    if (wrong == Wrong::truncated) flags |= dns::header::kTruncated >> 8U;
    if (wrong == Wrong::wrong_id) room_[dns::header::kId] ^= 0x80U;
    if (wrong == Wrong::malformed) size -= kCutOff;
    ++counts_.answered;
    output_.answer(now, query.client, dns::Bytes(room_).first(size));
}

// An error about a query that is not resolved: with its header only.
void Resolver::reject(Ticks now, const DnsClient& client, dns::Bytes message, dns::Rcode rcode) {
    std::ranges::copy(message.first(dns::kHeaderSize), room_.begin());
    ++counts_.answered;
    output_.answer(now, client, dns::Bytes(room_).first(dns::write_error(room_, rcode)));
}

void Resolver::clear() {
    pending_.clear();
    cache_.clear();
}

void Resolver::clear_counts() {
    counts_ = {};
    wrong_.clear_counts();
    cache_.clear_counts();
}

}  // namespace dutperf
