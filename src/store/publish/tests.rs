use super::super::result::tests::{action, artifact};
use super::*;

struct Fixture {
    _folder: tempfile::TempDir,
    store: Store,
    path: Utf8PathBuf,
}

fn publisher() -> Publisher<'static> {
    Publisher {
        key: action(1).key(),
        cell: "figure",
        manifest: Utf8Path::new("/m.toml"),
        command: &[],
    }
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let store = Store::create(root.join("cache")).unwrap();
        let path = root.join("figures/figure.txt");
        Self {
            _folder: folder,
            store,
            path,
        }
    }

    fn artifact(&self, text: &str) -> Artifact {
        let artifact = artifact("out", text.as_bytes());
        let object = self.store.layout().object(&artifact.object);
        fs_err::create_dir_all(object.parent().unwrap()).unwrap();
        fs_err::write(object, text).unwrap();
        artifact
    }

    fn publish(&self, text: &str) -> Result<Copied, StoreError> {
        Ok(self.publish_and_keep(text)?.0)
    }

    fn publish_and_keep(&self, text: &str) -> Result<(Copied, Option<Utf8PathBuf>), StoreError> {
        let published = self
            .store
            .publish(&self.path, &self.artifact(text), publisher())?;
        assert!(published.unnoted.is_none());
        Ok((published.copied, published.kept))
    }

    fn read(&self) -> String {
        fs_err::read_to_string(&self.path).unwrap()
    }
}

#[test]
fn a_copy_is_made_left_alone_updated_and_restored() {
    let fixture = Fixture::new();
    assert_eq!(fixture.publish("one").unwrap(), Copied::New);
    assert_eq!(fixture.read(), "one");
    assert_eq!(fixture.publish("one").unwrap(), Copied::Unchanged);
    assert_eq!(fixture.publish("two").unwrap(), Copied::Updated);
    assert_eq!(fixture.read(), "two");
    fs_err::remove_file(&fixture.path).unwrap();
    assert_eq!(fixture.publish("two").unwrap(), Copied::RestoredMissing);
    assert_eq!(
        fs_err::read_dir(fixture.path.parent().unwrap()).unwrap().count(),
        1
    );
    fs_err::write(&fixture.path, "altered").unwrap();
    let kept = Utf8PathBuf::from(format!("{}.orig", fixture.path));
    assert_eq!(
        fixture.publish_and_keep("two").unwrap(),
        (Copied::RestoredAltered, Some(kept.clone()))
    );
    assert_eq!(
        (fixture.read(), fs_err::read_to_string(kept).unwrap()),
        ("two".to_owned(), "altered".to_owned())
    );
}

#[test]
fn a_file_of_somebody_else_is_never_overwritten() {
    let fixture = Fixture::new();
    let folder = fixture.path.parent().unwrap();
    fs_err::create_dir_all(folder).unwrap();
    for (text, name) in [("precious", "figure.txt.orig"), ("too", "figure.txt.orig-2")] {
        fs_err::write(&fixture.path, text).unwrap();
        let kept = folder.join(name);
        assert_eq!(
            fixture.publish_and_keep("one").unwrap(),
            (Copied::Displaced, Some(kept.clone()))
        );
        assert_eq!(fs_err::read_to_string(kept).unwrap(), text);
        assert_eq!(fixture.read(), "one");
        fs_err::remove_dir_all(fixture.store.layout().published()).unwrap();
    }
    fs_err::remove_file(&fixture.path).unwrap();
    std::os::unix::fs::symlink("elsewhere", &fixture.path).unwrap();
    assert_eq!(fixture.publish("one").unwrap(), Copied::Displaced);
    fs_err::remove_file(&fixture.path).unwrap();
    fs_err::create_dir(&fixture.path).unwrap();
    assert!(matches!(
        fixture.publish("one"),
        Err(StoreError::FolderInTheWay { .. })
    ));
}

#[test]
fn a_copy_is_known_by_its_bytes_where_nothing_is_remembered_of_it() {
    let fixture = Fixture::new();
    fixture.publish("one").unwrap();
    fs_err::remove_dir_all(fixture.store.layout().published()).unwrap();
    assert_eq!(fixture.publish("one").unwrap(), Copied::Unchanged);
    assert_eq!(fixture.publish("one").unwrap(), Copied::Unchanged);
    fs_err::remove_dir_all(fixture.store.layout().published()).unwrap();
    assert_eq!(fixture.publish("two").unwrap(), Copied::Updated);
}

#[test]
fn a_damaged_object_is_not_published() {
    let fixture = Fixture::new();
    fixture.publish("one").unwrap();
    let artifact = fixture.artifact("two");
    fs_err::write(fixture.store.layout().object(&artifact.object), "2wo").unwrap();
    let published = fixture.store.publish(&fixture.path, &artifact, publisher());
    assert!(matches!(published, Err(StoreError::Damaged { .. })));
    assert_eq!(fixture.read(), "one");
    fs_err::remove_file(fixture.store.layout().object(&artifact.object)).unwrap();
    let published = fixture.store.publish(&fixture.path, &artifact, publisher());
    assert!(matches!(published, Err(StoreError::Missing { .. })));
}

#[test]
fn a_figure_that_the_store_does_not_have_is_kept_whether_its_seal_fits_or_not() {
    let identity = provenir_api::FigureIdentity {
        action_key: "key".to_owned(),
        data: Digest::of(b"data"),
    };
    let svg = format!("<svg>{}<path/></svg>", identity.svg_metadata());
    let sealed = FigureFile(provenir_api::FigureIdentity::seal(svg.into_bytes()));
    let fixture = Fixture::new();
    let folder = fixture.path.parent().unwrap();
    fs_err::create_dir_all(folder).unwrap();
    for found in [&sealed.0, &sealed.changed()] {
        fs_err::write(&fixture.path, found).unwrap();
        let (copied, kept) = fixture.publish_and_keep("one").unwrap();
        assert_eq!(copied, Copied::Displaced);
        assert_eq!(fs_err::read(kept.unwrap()).unwrap(), *found);
        fs_err::remove_dir_all(fixture.store.layout().published()).unwrap();
    }
}

struct FigureFile(Vec<u8>);

impl FigureFile {
    /// The same with a mark that somebody drew.
    fn changed(&self) -> Vec<u8> {
        String::from_utf8(self.0.clone())
            .unwrap()
            .replace("<path/>", "<path/><circle/>")
            .into_bytes()
    }
}
