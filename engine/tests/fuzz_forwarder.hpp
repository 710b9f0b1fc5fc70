// SPDX-License-Identifier: Apache-2.0
// Packets of any shape for ends of tunnels: what is forwarded is a whole IP packet, and lies in its buffer.
#pragma once

#include <algorithm>

#include "tests/fuzz_mutation.hpp"
#include "tests/ip_packet.hpp"
#include "tests/tunnel_duts.hpp"

namespace dutperf {

class ForwarderFuzz {
public:
    explicit ForwarderFuzz(Mutation& mutation) : mutation_(mutation) {
        for (const char* native :
             {"45000020 00014000 40110000 c6120002 c6130002 04d00007 000c0000 61626364",
              "45000020 00014000 40110000 c6130002 c6120002 000704d0 000c0000 61626364",
              "45000020 00014000 40110000 c6130002 c613fe81 00073000 000c0000 61626364",
              "60000000 000c1140 20010002000003000000000000000002 20010002000080000000000000000002 "
              "c0200007 000c0000 61626364",
              "60000000 000c1140 20010002000080000000000000000002 20010002000003000000000000000002 "
              "0007c020 000c0000 61626364"}) {
            Bytes ip = bytes(native);
            fill_checksums(ip, udp::kChecksum, kProtocolUdp);
            corpus_.push_back(ip);
        }
        encapsulate_all();
    }

    void turn() {
        Bytes ip = mutation_.changed(corpus_);
        if (ip.size() < ipv4::kSize) return;
        const std::uint8_t version = ip[0] >> 4U;
        if (version == 4 && mutation_.below(4) != 0) {  // or only a few would be looked at further
            store<std::uint16_t>(&ip[ipv4::kChecksum], 0);
            const std::size_t header = std::min(4 * std::size_t{ip[0] & 15U}, ip.size());
            store(&ip[ipv4::kChecksum], checksum_finish(checksum_add(ip.data(), header)));
        }
        for (Forwarder& dut : duts_) pass(dut, ip, mutation_.below(2));
    }

    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] std::uint64_t forwarded() const { return forwarded_; }

private:
    static constexpr std::size_t kRoom = kMostGrowth;

    // What an end makes of the native packets.
    void encapsulate_all() {
        const std::vector<Bytes> native = corpus_;
        for (const Bytes& ip : native) {
            for (Forwarder& dut : duts_) {
                for (const std::size_t from : {kLeft, kRight}) {
                    if (const auto made = pass(dut, ip, from)) corpus_.push_back(*made);
                }
            }
        }
    }

    std::optional<Bytes> pass(Forwarder& dut, const Bytes& ip, std::size_t from) {
        Bytes buffer(kRoom + ethernet::kSize);
        store_be16(&buffer[kRoom + ethernet::kType], ip[0] >> 4U == 6 ? ethernet::kTypeIpv6 : ethernet::kTypeIpv4);
        buffer.insert(buffer.end(), ip.begin(), ip.end());
        Bytes exact(buffer.begin(), buffer.end());  // a sanitizer finds reads behind it
        Packet packet{.at = &exact[kRoom], .length = exact.size() - kRoom};
        ++packets_;
        if (!std::holds_alternative<Forwarded>(dut.forward(packet, from, ++now_))) return std::nullopt;
        ++forwarded_;
        require(packet.at >= exact.data() && packet.at + packet.length <= exact.data() + exact.size(),
                "a packet outside of its buffer", ip);
        require(ip_length(packet) == packet.length - kEthernetPayloadAt, "no whole packet forwarded", ip);
        return Bytes(packet.ip(), packet.at + packet.length);
    }

    Mutation& mutation_;
    std::vector<Forwarder> duts_{map_ce(), map_br(), six_rd_ce(), six_rd_br(), aftr()};
    std::vector<Bytes> corpus_;
    Ticks now_ = 0;
    std::uint64_t packets_ = 0, forwarded_ = 0;
};

}  // namespace dutperf
