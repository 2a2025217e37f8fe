//! Reading a page: choose an image, read and check it, apply the log that it lacks.
//!
//! Nothing is locked meanwhile, so the materialiser may store a newer image and free the slot or
//! the log during the read. The reader notices this by its checks (rule 5) and starts over with
//! what is known then. If nothing changed, it has found damage, and tries an older image.

use std::sync::Arc;

use firn_api::{LogError, PageStoreError};
use firn_base::{Lsn, PageId};
use firn_format::page::PageBuf;

use super::Shared;
use super::slots::io_error;
use super::version::{Base, NoPlan, PageView, Plan, Replay, Version};

impl Shared {
    /// Reads the page as of `wanted`; `None`: the newest known version. Blocks for I/O.
    pub(super) fn read_known(
        &self,
        page: PageId,
        wanted: Option<Lsn>,
        into: &mut PageBuf,
    ) -> Result<(), PageStoreError> {
        loop {
            if self.is_dropped(page, wanted) {
                return Err(PageStoreError::Absent(page));
            }
            let view = self.table.view(page);
            let built = self.build(page, &view, wanted, into);
            match built.and_then(|()| self.not_newer(page, wanted, into)) {
                Ok(()) => return Ok(()),
                Err(error) if self.table.view(page).versions == view.versions => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Lets the disk begin to read the image from which a read as of `wanted` starts. Does not wait
    /// for it.
    pub(super) fn begin_read(&self, page: PageId, wanted: Option<Lsn>) {
        let view = self.table.view(page);
        if let Ok(Plan { base: Base::Stored(_, version), .. }) =
            view.plan(wanted, view.versions.len())
        {
            self.files.begin_read(version.slot);
        }
    }

    /// Waits until the newest known version of the page includes everything that ends at or before
    /// `at_least`.
    pub(super) fn wait_until_known(
        &self,
        page: PageId,
        at_least: Lsn,
    ) -> Result<(), PageStoreError> {
        if self.table.view(page).newest_known() >= at_least {
            return Ok(());
        }
        self.wait_until_told(at_least)
    }

    /// Waits until everything that ends at or before `lsn` is known.
    pub(super) fn wait_until_told(&self, lsn: Lsn) -> Result<(), PageStoreError> {
        if self.table.told() >= lsn {
            return Ok(());
        }
        Ok(self.log.wait_until_indexed(lsn)?)
    }

    fn is_dropped(&self, page: PageId, wanted: Option<Lsn>) -> bool {
        let dropped_at = self.table.dropped_at(page.space);
        dropped_at.is_some_and(|end| wanted.is_none_or(|wanted| wanted >= end))
    }

    fn build(
        &self,
        page: PageId,
        view: &PageView,
        wanted: Option<Lsn>,
        into: &mut PageBuf,
    ) -> Result<(), PageStoreError> {
        let mut usable = view.versions.len();
        let mut damage = None;
        loop {
            let plan = match view.plan(wanted, usable) {
                Ok(plan) => plan,
                Err(reason) => {
                    return Err(damage.unwrap_or_else(|| self.no_plan(page, wanted, reason)));
                }
            };
            match self.load(page, &plan.base, into) {
                Ok(()) => return self.finish(page, &plan, wanted, damage, into),
                Err((_, error)) if matches!(plan.base, Base::Nothing) => return Err(error),
                Err((index, error)) => {
                    usable = index;
                    damage.get_or_insert(error);
                }
            }
        }
    }

    fn no_plan(&self, page: PageId, wanted: Option<Lsn>, reason: NoPlan) -> PageStoreError {
        match (reason, wanted) {
            (NoPlan::TooOld, Some(wanted)) => self.too_old(page, wanted),
            _ => PageStoreError::Absent(page),
        }
    }

    fn too_old(&self, page: PageId, wanted: Lsn) -> PageStoreError {
        PageStoreError::TooOld { page, wanted, kept_from: self.table.horizon() }
    }

    /// Puts the base into `into`. An error names the version that is unusable.
    fn load(
        &self,
        page: PageId,
        base: &Base,
        into: &mut PageBuf,
    ) -> Result<(), (usize, PageStoreError)> {
        match base {
            Base::Nothing => {
                into.bytes_mut().fill(0);
                self.load_base(page, into).map_err(|error| (0, error))?;
            }
            Base::Queued(image) => into.bytes_mut().copy_from_slice(image.bytes()),
            Base::Stored(index, version) => {
                return self.load_stored(page, version, into).map_err(|error| (*index, error));
            }
        }
        Ok(())
    }

    /// Puts the page's base image into `into`, if it has one. Blocks for I/O.
    fn load_base(&self, page: PageId, into: &mut PageBuf) -> Result<(), PageStoreError> {
        let Some(base) = &self.base else { return Ok(()) };
        if base.pages.read(page, into)? {
            base.note_read(page);
        } else {
            into.bytes_mut().fill(0);
        }
        Ok(())
    }

    /// A base image may be newer than an old version that is asked for.
    fn not_newer(
        &self,
        page: PageId,
        wanted: Option<Lsn>,
        found: &PageBuf,
    ) -> Result<(), PageStoreError> {
        match wanted {
            Some(wanted) if found.lsn() > wanted => Err(self.too_old(page, wanted)),
            _ => Ok(()),
        }
    }

    /// Reads a stored image and checks that it is the expected one. Blocks for I/O.
    pub(super) fn load_stored(
        &self,
        page: PageId,
        version: &Version,
        into: &mut PageBuf,
    ) -> Result<(), PageStoreError> {
        let place = || self.files.place(version.slot);
        self.files.read(version.slot, into).map_err(|error| io_error(place(), &error))?;
        let damaged = |reason| PageStoreError::Damaged { page, place: place(), reason };
        into.verify(page).map_err(|damage| damaged(damage.to_string()))?;
        if into.lsn() != version.lsn {
            let reason = format!("the image is as of {}, not of {}", into.lsn(), version.lsn);
            return Err(damaged(reason));
        }
        Ok(())
    }

    fn finish(
        &self,
        page: PageId,
        plan: &Plan,
        wanted: Option<Lsn>,
        damage: Option<PageStoreError>,
        into: &mut PageBuf,
    ) -> Result<(), PageStoreError> {
        let replayed = plan.replay.map_or(Ok(()), |replay| self.replay(page, replay, into));
        match (replayed, damage, wanted) {
            (Err(PageStoreError::Log(LogError::OutOfRange { .. })), Some(damage), _) => Err(damage),
            (Err(PageStoreError::Log(LogError::OutOfRange { .. })), None, Some(wanted)) => {
                Err(self.too_old(page, wanted))
            }
            (Err(error), ..) => Err(error),
            (Ok(()), damage, _) if into.lsn() == Lsn(0) => {
                Err(damage.unwrap_or(PageStoreError::Absent(page)))
            }
            (Ok(()), Some(damage), _) => {
                self.report_repairable(page, &damage);
                Ok(())
            }
            (Ok(()), None, _) => Ok(()),
        }
    }

    /// Applies the page's log. Blocks for I/O.
    fn replay(
        &self,
        page: PageId,
        replay: Replay,
        into: &mut PageBuf,
    ) -> Result<(), PageStoreError> {
        // When it was offered, a stored image may have been ahead of the reported log.
        self.wait_until_told(replay.to)?;
        // A base image includes some of the log behind the base's start.
        let included = into.lsn();
        let mut refused = None;
        let result =
            self.log.visit_records(page, replay.from, replay.to, &mut |start, end, record| {
                if refused.is_none() && end > included {
                    match (self.apply)(into, page, record) {
                        Ok(()) => into.set_lsn(end),
                        Err(reason) => refused = Some((start, reason)),
                    }
                }
                Ok(())
            });
        let damaged = |at: Lsn, reason| {
            let place = format!("the log at position {at}");
            Err(PageStoreError::Damaged { page, place, reason })
        };
        match (result, refused) {
            (Err(error), _) => Err(error.into()),
            (Ok(()), Some((start, reason))) => damaged(start, reason),
            (Ok(()), None) if replay.reaches_end && into.lsn() != replay.to.max(included) => {
                let reason =
                    format!("the log names a change there, but gives one at {}", into.lsn());
                damaged(replay.to, reason)
            }
            (Ok(()), None) => Ok(()),
        }
    }

    /// A copy of the page from the attached cache, if it is of use.
    pub(super) fn copy_cached(&self, page: PageId, newer_than: Lsn, into: &mut PageBuf) -> bool {
        let source = self.images.read().as_ref().map(Arc::clone);
        source.is_some_and(|source| source.copy_image(page, into))
            && into.page_id() == page
            && into.lsn() > newer_than
            && into.lsn() <= self.log.durable_lsn()
    }
}
