use super::super::owner::tests::{dead, elsewhere};
use super::super::result::tests::action;
use super::*;

struct Fixture {
    _folder: tempfile::TempDir,
    store: Store,
    key: ActionKey,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Utf8Path::from_path(folder.path()).unwrap());
    Fixture {
        _folder: folder,
        store,
        key: action(1).key(),
    }
}

impl Fixture {
    fn plant(&self, owner: Owner) {
        let content = Content {
            owner,
            nonce: "planted".into(),
        };
        fs_err::create_dir_all(self.store.layout().claims()).unwrap();
        let path = self.store.layout().claims().join(self.key.hex());
        fs_err::write(path, serde_json::to_vec(&content).unwrap()).unwrap();
    }

    fn request(&self) -> Claimed {
        Claims::new(&self.store).request(&self.key).unwrap()
    }

    fn files(&self) -> usize {
        fs_err::read_dir(self.store.layout().claims()).map_or(0, Iterator::count)
    }
}

#[test]
fn a_claim_is_given_once_until_it_is_given_up() {
    let fixture = fixture();
    let Claimed::Ours(claim) = fixture.request() else {
        panic!("nobody else is there")
    };
    claim.renew().unwrap();
    let Claimed::Theirs(owner) = fixture.request() else {
        panic!("it is taken")
    };
    assert_eq!(owner, *Owner::current());
    assert_eq!(
        standing(fixture.store.layout()).unwrap(),
        [(fixture.key, Owner::current().clone())]
    );
    assert_eq!(fixture.files(), 1);
    drop(claim);
    assert_eq!(fixture.files(), 0);
    assert!(matches!(fixture.request(), Claimed::Ours(_)));
}

#[test]
fn a_dead_owner_is_superseded_at_once() {
    let fixture = fixture();
    fixture.plant(dead());
    assert!(standing(fixture.store.layout()).unwrap().is_empty());
    let claimed = fixture.request();
    assert!(matches!(claimed, Claimed::Ours(_)));
    assert_eq!(fixture.files(), 1);
}

#[test]
fn claims_of_dead_owners_are_swept_and_no_others() {
    let fixture = fixture();
    fixture.plant(dead());
    fs_err::write(
        fixture
            .store
            .layout()
            .claims()
            .join(format!("{}.1-2", fixture.key)),
        "{}",
    )
    .unwrap();
    Claims::new(&fixture.store).sweep().unwrap();
    assert_eq!(fixture.files(), 0);
    for owner in [Owner::current().clone(), elsewhere()] {
        fixture.plant(owner);
        Claims::new(&fixture.store).sweep().unwrap();
        assert_eq!(fixture.files(), 1);
    }
}

#[test]
fn an_owner_elsewhere_is_superseded_after_a_lease_without_renewal() {
    let fixture = fixture();
    fixture.plant(elsewhere());
    let mut patient = Claims::new(&fixture.store);
    for _ in 0..3 {
        assert!(matches!(
            patient.request(&fixture.key).unwrap(),
            Claimed::Theirs(_)
        ));
    }
    let mut claims = Claims::with_lease(&fixture.store, Duration::ZERO);
    assert!(matches!(
        claims.request(&fixture.key).unwrap(),
        Claimed::Theirs(_)
    ));
    fixture.plant(elsewhere());
    assert!(
        matches!(claims.request(&fixture.key).unwrap(), Claimed::Theirs(_)),
        "it was renewed"
    );
    assert!(matches!(claims.request(&fixture.key).unwrap(), Claimed::Ours(_)));
}

#[test]
fn a_file_that_is_no_claim_holds_nobody_up_for_ever() {
    let fixture = fixture();
    fs_err::create_dir_all(fixture.store.layout().claims()).unwrap();
    fs_err::write(fixture.store.layout().claims().join(fixture.key.hex()), "{").unwrap();
    let mut claims = Claims::with_lease(&fixture.store, Duration::ZERO);
    assert!(matches!(
        claims.request(&fixture.key).unwrap(),
        Claimed::Theirs(_)
    ));
    assert!(matches!(claims.request(&fixture.key).unwrap(), Claimed::Ours(_)));
}

/// What is no file, too: a link to nothing could neither be claimed over nor be read.
#[test]
fn a_link_or_a_pipe_in_the_place_of_a_claim_holds_nobody_up_for_ever() {
    let fixture = fixture();
    let place = fixture.store.layout().claims().join(fixture.key.hex());
    fs_err::create_dir_all(fixture.store.layout().claims()).unwrap();
    let plants: [&dyn Fn(); 3] = [
        &|| fs_err::os::unix::fs::symlink("/no/such/file", &place).unwrap(),
        &|| fs_err::os::unix::fs::symlink(&place, &place).unwrap(),
        &|| {
            let mode = rustix::fs::Mode::RUSR;
            rustix::fs::mknodat(
                rustix::fs::CWD,
                place.as_str(),
                rustix::fs::FileType::Fifo,
                mode,
                0,
            )
            .unwrap();
        },
    ];
    for plant in plants {
        plant();
        let mut claims = Claims::with_lease(&fixture.store, Duration::ZERO);
        assert!(matches!(
            claims.request(&fixture.key).unwrap(),
            Claimed::Theirs(_)
        ));
        assert!(matches!(claims.request(&fixture.key).unwrap(), Claimed::Ours(_)));
    }
}

#[test]
fn an_owner_that_was_superseded_does_not_remove_its_successor() {
    let fixture = fixture();
    let Claimed::Ours(claim) = fixture.request() else {
        panic!("nobody else is there")
    };
    fixture.plant(elsewhere());
    drop(claim);
    assert_eq!(fixture.files(), 1);
}

#[test]
fn of_many_contenders_for_a_void_claim_one_gets_it() {
    for _ in 0..20 {
        let fixture = fixture();
        fixture.plant(dead());
        let won: Vec<Claimed> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| fixture.request())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let ours = won
            .iter()
            .filter(|claimed| matches!(claimed, Claimed::Ours(_)))
            .count();
        assert_eq!(ours, 1);
    }
}
