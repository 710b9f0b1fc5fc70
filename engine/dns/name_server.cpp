// SPDX-License-Identifier: Apache-2.0
#include "dns/name_server.hpp"

#include <algorithm>

namespace dutperf::dns {

namespace {

constexpr std::uint8_t kEdnsVersion = 0;

bool is_ns(Bytes name) { return name[0] == kNsLabel[0] && (name[1] | 0x20U) == 'n' && (name[2] | 0x20U) == 's'; }

}  // namespace

bool NameServer::is_own(const IpAddress& address) const {
    if (!address.is_ipv6) return options_.ipv4 && address.ipv4() == *options_.ipv4;
    return std::ranges::find(options_.ipv6, address.bytes) != options_.ipv6.end();
}

std::optional<Datagram> NameServer::datagram_in(Bytes frame) const {
    const auto datagram = read_datagram(frame);
    return datagram && serves(datagram->between) ? datagram : std::nullopt;
}

std::size_t NameServer::answer(Bytes frame, const Datagram& datagram, Room to) {
    if (!is_intact(datagram.checksum, options_.takes_unfinished) || datagram.payload.size() > kMostQuerySize) {
        ++counts_.malformed;
        return 0;
    }
    const std::size_t headers = datagram_payload_at(datagram.between.destination.is_ipv6);
    std::ranges::copy(datagram.payload, to.begin() + static_cast<std::ptrdiff_t>(headers));
    const std::size_t size = answer_message(datagram.payload, to.subspan(headers));
    return size == 0 ? 0 : write_datagram(to.data(), MacPair::back_from(frame.data()), datagram.between.turned(), size);
}

// The query is also at the beginning of `to`.
std::size_t NameServer::answer_message(Bytes query, Room to) {
    const auto header = read_header(query);
    if (!header || header->is(header::kResponse)) {  // an answer to a response might be answered as well
        ++counts_.malformed;
        return 0;
    }
    if (header->opcode() != 0) {
        ++counts_.refused;
        return write_error(to, Rcode::notimp);
    }
    if (const auto message = read_message(query)) return answer_query(*message, to);
    ++counts_.malformed;
    return write_error(to, Rcode::formerr);
}

std::size_t NameServer::answer_query(const Message& query, Room to) {
    Reply reply;
    if (query.edns && query.edns->version > kEdnsVersion) {
        ++counts_.refused;
        reply.rcode = Rcode::badvers;
    } else {
        reply = reply_to(query.question);
    }
    if (query.edns) reply.edns = Edns{.dnssec_ok = query.edns->dnssec_ok};
    return write_reply(to, query.question, reply);
}

Reply NameServer::reply_to(const Question& question) {
    const auto zone_at = question.klass == kClassIn ? options_.zone.place_in(question.name) : std::nullopt;
    if (!zone_at) {
        ++counts_.refused;
        return {.rcode = Rcode::refused};
    }
    Reply reply{.rcode = Rcode::nxdomain, .authoritative = true, .ttl_s = options_.ttl_s, .soa = true};
    const auto test_name =
        *zone_at == 1 + kTestLabelSize ? read_test_label(question.name.subspan(1, kTestLabelSize)) : std::nullopt;
    if (*zone_at == 0) {
        reply = reply_of_apex(question.type);
    } else if (*zone_at == kNsLabel.size() && is_ns(question.name)) {
        reply = reply_of_ns(question.type);
    } else if (test_name) {
        reply = reply_of(*test_name, question.type);
    } else {
        ++counts_.unknown;
    }
    reply.zone_at = *zone_at;
    return reply;
}

Reply NameServer::reply_of_apex(std::uint16_t type) {
    ++counts_.other;
    Reply reply = no_data();
    reply.soa_as_answer = type == type::kSoa;
    reply.ns = type == type::kNs;
    reply.soa = !reply.soa_as_answer && !reply.ns;
    return reply;
}

Reply NameServer::reply_of_ns(std::uint16_t type) {
    ++counts_.other;
    Reply reply = no_data();
    if (type == type::kA && options_.ipv4) reply.a = &*options_.ipv4;
    if (type == type::kAaaa && !options_.ipv6.empty()) reply.aaaa = {options_.ipv6.data(), 1};
    reply.soa = reply.a == nullptr && reply.aaaa.empty();
    return reply;
}

Reply NameServer::reply_of(const TestName& name, std::uint16_t type) {
    count(name, type);
    Reply reply = no_data();
    if (type == type::kA) {
        a_ = a_record_of(name.number);
        reply.a = &a_;
    } else if (type == type::kAaaa && name.has_aaaa) {
        aaaa_ = aaaa_record_of(name.number);
        reply.aaaa = {&aaaa_, 1};
    }
    reply.soa = reply.a == nullptr && reply.aaaa.empty();
    return reply;
}

void NameServer::count(const TestName& name, std::uint16_t type) {
    const bool is_fresh =
        name.run == options_.run && std::ranges::find(options_.trials, name.trial) != options_.trials.end();
    ++(!is_fresh ? counts_.stale : type == type::kA ? counts_.a : type == type::kAaaa ? counts_.aaaa : counts_.other);
}

}  // namespace dutperf::dns
