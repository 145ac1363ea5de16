//! Lies about what is read and listed.

use lock_spi::{KeyPrefix, LockInfo, LockKey, LockStore, Page, PageRequest, Result, Revocation};

use super::{Lie, Lying};

impl<S: LockStore> Lying<S> {
    pub(super) async fn look(&self, key: &LockKey) -> Result<LockInfo> {
        if self.tells(Lie::LeavesATraceOfReading) {
            self.open_hidden().await?;
        }
        let info = self.store.read(&self.key(key)).await?;
        Ok(self.told_info(key, info))
    }

    pub(super) async fn look_through(
        &self,
        prefix: &KeyPrefix,
        request: PageRequest,
    ) -> Result<Page<LockInfo>> {
        let later = request.after.is_some();
        let prefix = match self.tells(Lie::ListsByPathSegment) {
            true => KeyPrefix::new(prefix.as_str().trim_end_matches('/'))?,
            false => prefix.clone(),
        };
        let mut page = self.store.list(&prefix, request).await?;
        if later && self.tells(Lie::SkipsBetweenPages) && !page.entries.is_empty() {
            page.entries.remove(0);
        }
        if self.tells(Lie::ListsTwice)
            && let (Some(last), Some(_)) = (page.entries.last().cloned(), &page.next)
        {
            page.entries.push(last);
        }
        let told = |info: LockInfo| {
            let key = info.key.clone();
            self.told_info(&key, info)
        };
        page.entries = page.entries.into_iter().map(told).collect();
        Ok(page)
    }

    pub(super) async fn records(
        &self,
        key: &LockKey,
        request: PageRequest,
    ) -> Result<Page<Revocation>> {
        let mut page = self.store.revocations(&self.key(key), request).await?;
        if self.tells(Lie::KeepsNoRecords) {
            page.entries.clear();
        }
        if self.tells(Lie::TellsOldestRecordsFirst) {
            page.entries.reverse();
        }
        for record in &mut page.entries {
            record.key = key.clone();
            record.outcome = self.told_outcome(key, record.outcome.clone());
        }
        Ok(page)
    }
}
