//! Clients that observe other clients' actions: they watch keys, track keys, subscribe to channels or monitor requests.

pub(crate) mod announcements;
pub(crate) mod events;
pub(crate) mod expired;
mod monitors;
pub(crate) mod notify;
pub(crate) mod pubsub;
pub(crate) mod tracking;
pub(crate) mod watch;

use crate::clients::Kind;
use crate::clients::session::Session;
use monitors::Monitors;
use pubsub::PubSub;
use tracking::Tracking;
use watch::Watches;

/// The observing clients by what they observe.
#[derive(Default)]
pub(crate) struct Observers {
    pub(crate) watches: Watches,
    pub(crate) tracking: Tracking,
    pub(crate) pubsub: PubSub,
    pub(crate) monitors: Monitors,
}

impl Observers {
    /// Removes the client from all observers.
    pub(crate) fn forget(&self, session: &mut Session) {
        session.unwatch(&self.watches);
        if session.tracks.take().is_some() {
            self.tracking.disable(session.id);
        }
        for kind in Kind::ALL {
            for name in std::mem::take(session.subscriptions_mut(kind)) {
                self.pubsub.unsubscribe(kind, &name, session.record.place);
            }
        }
        if std::mem::take(&mut session.monitors) {
            self.monitors.remove(session.record.place);
        }
    }
}
