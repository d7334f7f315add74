//! Items of a list that says its kind only behind them: kept unparsed until then, up to a bound.

use zeroize::Zeroizing;

use super::cursor::Place;
use super::intake::Intake;
use super::list::Envelope;
use super::piece::Piece;

/// How much is kept.
const BYTES_MAX: usize = 64 << 20;

/// Items whose kind is not known yet.
#[derive(Default)]
pub(super) struct Pending {
    items: Vec<(Zeroizing<Vec<u8>>, Place)>,
    bytes: usize,
    /// Items that were too many to keep.
    dropped: u64,
    /// Whether any item was lost, for whichever reason.
    is_lossy: bool,
}

impl Pending {
    /// Takes an item, or keeps it if nothing so far says what it is.
    pub(super) fn item(
        &mut self,
        intake: &mut Intake<'_>,
        piece: Piece<'_>,
        place: Place,
        envelope: &Envelope,
    ) {
        if envelope.is_table() {
            return intake.row(piece, envelope, place);
        }
        let head = piece.head();
        if !head.kind.is_empty() || !envelope.kind.is_empty() || intake.expects() {
            return intake.listed(&envelope.complete(head), piece, place);
        }
        let text = piece.text();
        if self.bytes + text.len() > BYTES_MAX {
            self.dropped += 1;
            self.lose();
        } else {
            self.bytes += text.len();
            self.items.push((Zeroizing::new(text.to_vec()), place));
        }
    }

    /// Notes that an item was lost, so that nothing follows from the absence of another one.
    pub(super) fn lose(&mut self) {
        self.is_lossy = true;
    }

    /// Whether no item was lost.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_lossy
    }

    /// Takes what was kept, now that the list has said what it holds. `form` is how its text becomes a piece.
    pub(super) fn hand_on(
        self,
        intake: &mut Intake<'_>,
        envelope: &Envelope,
        form: impl Fn(&[u8]) -> Option<Piece<'_>>,
    ) {
        for (text, place) in &self.items {
            if let Some(piece) = form(text) {
                intake.listed(&envelope.complete(piece.head()), piece, *place);
            }
        }
        if let (Some((_, place)), true) = (self.items.last(), self.dropped > 0) {
            let why = "the list says its kind only behind them, and they are too many to keep until then; name the \
                       file after what it holds, such as `pods.json`";
            intake.gap(format_args!("{} items of the list", self.dropped), *place, why);
        }
    }
}
