// SPDX-License-Identifier: Apache-2.0
#include "server/server.hpp"

#include <utility>

#include "server/events.hpp"
#include "server/replay_requests.hpp"
#include "server/requests.hpp"

namespace dutperf {

using nlohmann::json;

namespace {

constexpr int kIdleWaitMs = 10;     // interval of polling the ports for ARP and NDP
constexpr int kTrialWaitMs = 10;    // interval of checking a running trial: each time takes the DUT's core on two cores
constexpr int kNothingOpenMs = -1;  // wait for requests only

}  // namespace

void Server::serve_until_end_of_input() {
    const auto dispatched = [this](const json& id, const std::string& method, Reader& request) {
        dispatch(id, method, request);
    };
    while (stream_.wait(patience_ms()) != RequestStream::Input::end) {
        stream_.answer_all(dispatched);
        if (session_) session_->watch_links();
        if (trial_) {
            look_after_trial();
        } else if (session_) {
            session_->serve();
        }
        if (waiting_ && (session_->links_are_up() || Clock::now() >= waiting_->until)) start_waiting();
    }
}

int Server::patience_ms() const { return trial_ ? kTrialWaitMs : session_ ? kIdleWaitMs : kNothingOpenMs; }

void Server::dispatch(const json& id, const std::string& method, Reader& request) {
    if (method == "hello") {
        request.finish();
        return stream_.write(hello_event(), id);
    }
    if (method == "stop") {
        auto params = request.optional_object("params");
        const bool drains = params && params->flag("drain");
        if (params) params->finish();
        request.finish();
        return stop(id, drains);
    }
    if (method != "open" && method != "load" && method != "run")
        request.fail("method", "must be one of hello, open, load, run, stop, not '" + method + "'");
    if (trial_ || waiting_) throw Error("busy", "a trial is running");
    if (method == "open") {
        open(id, request);
    } else if (method == "load") {
        load(id, request);
    } else {
        run(id, request);
    }
}

void Server::open(const json& id, Reader& request) {
    if (session_) throw Error("already_open", "the ports are open already; another set-up needs another engine");
    const OpenRequest parsed = read_open(request.object("params"));
    request.finish();
    session_ = std::make_unique<Session>(parsed);
    stream_.write(opened_event(*session_), id);
}

// A list that is refused is gone: it may have some of its frames.
void Server::load(const json& id, Reader& request) {
    const std::shared_ptr<FrameList> before = std::exchange(frames_, nullptr);
    const std::shared_ptr<FrameList> list = read_load(request.object("params"), before);
    request.finish();
    frames_ = list;
    stream_.write(loaded_event(*frames_), id);
}

void Server::run(const json& id, Reader& request) {
    if (!session_) throw Error("not_open", "no ports are open yet");
    const TrialSpec spec =
        read_trial(request.object("params"), session_->request().max_frame_size, session_->request().paths, frames_);
    request.finish();
    session_->require_ports();
    waiting_ = Waiting{.spec = spec, .id = id, .until = Clock::now() + session_->request().link_timeout};
    if (session_->links_are_up()) start_waiting();
}

// A link that stays down makes the trial invalid. The trial runs all the same, for its counts.
void Server::start_waiting() {
    const Waiting waiting = *std::exchange(waiting_, std::nullopt);
    trial_id_ = waiting.id;
    const bool begun =
        stream_.answering(waiting.id, [&] { trial_ = std::make_unique<RunningTrial>(session_->bed(), waiting.spec); });
    if (begun) next_progress_s_ = progress_s();
}

double Server::progress_s() const { return static_cast<double>(trial_->spec().progress_ms) / 1000; }

void Server::stop(const json& id, bool drains) {
    if (waiting_) start_waiting();
    if (trial_) drains ? trial_->stop_sending() : trial_->stop();
    stream_.write(stopped_event(), id);
}

void Server::look_after_trial() {
    trial_->look_after();
    if (trial_->done()) {
        const auto alive = [this] { stream_.write(progress_event(*trial_, session_->bed().clock_hz), trial_id_); };
        json event;
        const bool finished =
            stream_.answering(trial_id_, [&] { event = result_event(trial_->finish(alive), session_->bed()); });
        trial_.reset();
        if (finished) stream_.write(event, trial_id_);
    } else if (trial_->elapsed_s() >= next_progress_s_) {
        next_progress_s_ += progress_s();
        stream_.write(progress_event(*trial_, session_->bed().clock_hz), trial_id_);
    }
}

}  // namespace dutperf
