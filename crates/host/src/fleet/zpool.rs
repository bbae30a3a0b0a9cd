//! Members of ZFS pools, from what `zpool status -P -L -j` writes (OpenZFS 2.3).

use levelhead_units::foreign;
use serde_json::Value;

use super::survey::{Kind, Redundancy, Survey, SurveyedGroup};

/// How deep vdevs stand on vdevs at most.
const DEPTH_MAX: usize = 8;

impl Survey {
    /// Takes the pools of that text instead of those that were known, drives of data only: logs, caches and spares have another load. A pool
    /// called as another group is has `zfs-` before its name.
    ///
    /// # Errors
    ///
    /// It is no such text.
    pub fn add_pools(&mut self, text: &str) -> Result<(), String> {
        let status: Value =
            serde_json::from_str(text).map_err(|error| format!("zpool: {error}"))?;
        let pools =
            status.get("pools").and_then(Value::as_object).ok_or("zpool: it names no pools")?;
        self.groups.retain(|it| it.kind != Kind::Zfs);
        for (name, pool) in pools {
            let mut found = Found::default();
            found.walk(pool, 0, false);
            let key = |path: &String| {
                let name = path.rsplit('/').next().unwrap_or(path);
                self.key_of(name).map(str::to_owned)
            };
            let mut members: Vec<_> = found.paths.iter().filter_map(key).collect();
            members.sort();
            members.dedup();
            if members.is_empty() {
                continue;
            }
            let scan =
                pool.get("scan_stats").and_then(|it| it.get("state")).and_then(Value::as_str);
            let name = foreign(name);
            let is_taken = self.groups.iter().any(|it| it.name == name);
            let name = if is_taken { format!("zfs-{name}") } else { name };
            self.groups.push(SurveyedGroup {
                id: name.clone(),
                name,
                kind: Kind::Zfs,
                redundancy: found.redundancy(pool),
                is_rebuilding: scan == Some("SCANNING"),
                members,
            });
        }
        self.groups.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }
}

#[derive(Default)]
struct Found {
    paths: Vec<String>,
    has_redundancy: bool,
    /// Whether a disk stands under nothing that is redundant.
    has_bare_disk: bool,
}

impl Found {
    fn redundancy(&self, pool: &Value) -> Redundancy {
        let state = pool.get("state").and_then(Value::as_str);
        match (self.has_redundancy, self.has_bare_disk) {
            (false, _) => Redundancy::None,
            (true, false) if state.is_none_or(|state| state == "ONLINE") => Redundancy::Spare,
            (true, _) => Redundancy::UsedUp,
        }
    }

    fn walk(&mut self, vdev: &Value, depth: usize, is_below_redundant: bool) {
        let text = |name: &str| vdev.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut is_redundant = is_below_redundant;
        match text("vdev_type") {
            "disk" => {
                self.paths.push(text("path").to_owned());
                self.has_bare_disk |= !is_below_redundant;
            }
            "mirror" | "raidz" | "draid" => {
                self.has_redundancy = true;
                is_redundant = true;
            }
            _ => {}
        }
        if let Some(vdevs) =
            vdev.get("vdevs").and_then(Value::as_object).filter(|_| depth < DEPTH_MAX)
        {
            vdevs.values().for_each(|it| self.walk(it, depth + 1, is_redundant));
        }
    }
}
