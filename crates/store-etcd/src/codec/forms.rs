//! How single fields stand in JSON.

/// What has a text form of its own.
pub(super) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(in super::super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

pub(super) mod optional_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = value.as_ref().map(ToString::to_string);
        text.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let value = text.map(|text| text.parse()).transpose();
        value.map_err(D::Error::custom)
    }
}

/// Durations in whole milliseconds.
pub(super) mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        Ok(Duration::from_millis(u64::deserialize(deserializer)?))
    }
}

pub(super) mod ttl_millis {
    use lock_spi::Ttl;
    use serde::de::Error;
    use serde::{Deserializer, Serializer};

    use super::millis;

    pub(in super::super) fn serialize<S: Serializer>(
        ttl: &Ttl,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        millis::serialize(&ttl.as_duration(), serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Ttl, D::Error> {
        Ttl::new(millis::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Bytes, most of them text: readable with etcd's own tools.
pub(super) mod escaped {
    use lock_spi::Payload;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::super::percent;

    pub(in super::super) fn serialize<S: Serializer>(
        payload: &Payload,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&percent::encode(payload.as_bytes()))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Payload, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = percent::decode(&text)
            .ok_or_else(|| D::Error::custom("the payload is not escaped as it should be"))?;
        Payload::new(bytes).map_err(D::Error::custom)
    }
}
