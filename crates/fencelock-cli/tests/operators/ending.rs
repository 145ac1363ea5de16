//! Commands that end the grants of others.

use fencelock::LostReason;
use serde_json::json;

use crate::clients::{client, hold, lost};
use crate::sites::on_each;
use crate::snapshots::assert_printed;

const NOT_HELD: i32 = 83;

/// B62, B161: exactly the grant that was named is ended; its holder learns who did it and why; the
/// next holder has a higher token; a second time nothing changes, and the status says so.
#[test]
fn a_grant_is_revoked_by_its_token_and_once() {
    on_each(|site| {
        let worker = client(&site.url, "worker-3");
        let guard = hold(&worker, "nightly");
        let (token, other) = (
            guard.token().to_string(),
            (guard.token().as_u64() - 1).to_string(),
        );
        let revoke = |token: &str, more: &[&str]| {
            let named = ["revoke", "nightly", "--token", token, "--reason", "stuck"];
            site.run(&[&named, more].concat())
        };
        let wrong = revoke(&other, &[]);
        assert_eq!(
            (wrong.status, wrong.stdout.as_str()),
            (NOT_HELD, ""),
            "{wrong:?}"
        );
        assert!(
            wrong.stderr.contains("fencelock inspect nightly"),
            "{wrong:?}"
        );
        assert!(guard.check().is_ok());

        let done = revoke(&token, &[]).data();
        let floor = done.rsplit("below ").next().unwrap();
        let floor = floor.split(' ').next().unwrap();
        let words = [(token.as_str(), "[token]"), (floor, "[floor]")];
        assert_printed("revoke", &done, &words);
        match lost(&guard).reason {
            LostReason::Revoked { by, reason } => {
                assert!(by.as_str().contains('@'), "{by}");
                assert_eq!(reason.as_str(), "stuck");
            }
            reason => panic!("{reason:?}"),
        }
        let again = revoke(&token, &["--json"]);
        assert_eq!(again.status, NOT_HELD, "{again:?}");
        assert!(again.stderr.contains("\"kind\":\"not_held\""), "{again:?}");
        let next = hold(&worker, "nightly");
        assert!(next.token() > guard.token());
    });
}

/// It may meet a grant that began after its user looked: so it asks, and without somebody who can be
/// asked it demands consent.
#[test]
fn whoever_holds_it_is_revoked_only_with_consent() {
    on_each(|site| {
        let worker = client(&site.url, "worker-3");
        let guard = hold(&worker, "nightly");
        let whoever = ["revoke", "nightly", "--whoever", "--reason", "host is gone"];
        let refused = site.run(&whoever);
        assert_eq!(refused.status, 64, "{refused:?}");
        assert!(refused.stderr.contains("--yes"), "{refused:?}");
        assert!(guard.check().is_ok());
        let consent = [&whoever[..], &["--yes", "--by", "alice", "--json"]].concat();
        let done = site.run(&consent).json();
        assert_eq!(done["revoked"], json!(true));
        assert_eq!(done["previous_owner"], json!("worker-3"));
        assert_eq!(done["previous_token"], json!(guard.token().to_string()));
        assert!(matches!(lost(&guard).reason, LostReason::Revoked { .. }));
        // Of a free lock the floor rises.
        let raised = site.run(&consent).json();
        assert_eq!(raised["revoked"], json!(false));
        let floor: u64 = raised["floor"].as_str().unwrap().parse().unwrap();
        let next = hold(&worker, "nightly");
        assert!(next.token().as_u64() > floor);
    });
}

#[test]
fn who_revoked_what_and_why_is_told_newest_first() {
    on_each(|site| {
        assert_eq!(
            site.run(&["revocations", "nightly"]).data(),
            "nothing was revoked\n"
        );
        let worker = client(&site.url, "worker-3");
        let mut tokens = Vec::new();
        for (by, reason) in [("alice", "stuck"), ("bob", "stuck again")] {
            let guard = hold(&worker, "nightly");
            let token = guard.token().to_string();
            let named = ["revoke", "nightly", "--token", &token];
            site.run(&[&named[..], &["--by", by, "--reason", reason]].concat())
                .data();
            tokens.push(token);
            lost(&guard);
        }
        let document = site.run(&["revocations", "nightly", "--json"]).json();
        let all = document.as_array().unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0]["by"], json!("bob"));
        assert_eq!(all[0]["reason"], json!("stuck again"));
        assert_eq!(all[0]["previous_token"], json!(tokens[1]));
        assert_eq!(all[1]["by"], json!("alice"));
        let floors = [0, 1].map(|place| all[place]["floor"].as_str().unwrap().to_owned());
        let newest = site.run(&["revocations", "nightly", "--limit", "1"]).data();
        let words = [
            (tokens[1].as_str(), "[token]"),
            (floors[0].as_str(), "[floor]"),
        ];
        assert_printed("revocations", &newest, &words);
    });
}

/// B167: what is not named is not touched, and the status says so. A release of what was released
/// before has the same status: the store keeps no record of who gave back.
#[test]
fn a_grant_is_released_by_its_token_and_no_other() {
    on_each(|site| {
        let worker = client(&site.url, "worker-3");
        let [guard, other] = ["nightly", "other"].map(|key| hold(&worker, key));
        let (token, foreign) = (guard.token().to_string(), other.token().to_string());
        let release = |token: &str| site.run(&["release", "nightly", "--token", token]);
        let wrong = release(&foreign);
        assert_eq!(
            (wrong.status, wrong.stdout.as_str()),
            (NOT_HELD, ""),
            "{wrong:?}"
        );
        assert!(guard.check().is_ok());
        assert_printed("release", &release(&token).data(), &[(&token, "[token]")]);
        let reason = lost(&guard).reason;
        assert!(reason.is_definite(), "{reason:?}");
        assert_eq!(release(&token).status, NOT_HELD);
        assert!(other.check().is_ok());
        let next = hold(&worker, "nightly");
        assert!(next.token() > guard.token());
    });
}

/// Neither a token nor consent to whoever, or both: refused before anything is asked of a store.
#[test]
fn a_revoke_that_names_no_grant_or_gives_no_reason_is_refused() {
    let nowhere = "etcd://127.0.0.1:1";
    for arguments in [
        &["revoke", "k", "--reason", "x"][..],
        &["revoke", "k", "--token", "7"],
        &["revoke", "k", "--token", "7", "--whoever", "--reason", "x"],
        &["revoke", "k", "--token", "seven", "--reason", "x"],
        &["release", "k"],
        &["release", "k", "--token", "-1"],
    ] {
        let refused = crate::command::run(nowhere, arguments);
        assert_eq!(refused.status, 64, "{refused:?}");
    }
}
