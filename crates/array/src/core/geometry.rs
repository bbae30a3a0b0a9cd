//! Where everything lies.

use super::Core;
use crate::settings::Settings;
use crate::shape::redundancy::Redundancy;
use crate::shape::{Area, Layout};

/// See the module. It does not change.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) layout: Layout,
    /// Where the layout's sectors lie on the drives.
    area: Area,
    /// Absent where nothing is redundant.
    code: Option<Redundancy>,
}

impl Geometry {
    pub(super) fn new(settings: &Settings) -> Self {
        let layout = Layout::new(settings.spec, settings.area.size());
        Self { code: Redundancy::of(&layout), layout, area: settings.area.clone() }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Where the layout's sectors lie on the drives.
    pub(crate) fn area(&self) -> &Area {
        &self.area
    }
}

impl Core {
    pub(crate) fn layout(&self) -> &Layout {
        &self.place.layout
    }

    pub(crate) fn area(&self) -> &Area {
        &self.place.area
    }

    /// Absent where nothing is redundant.
    pub(crate) fn code(&self) -> Option<&Redundancy> {
        self.place.code.as_ref()
    }
}
