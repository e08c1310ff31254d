-- The slots that workers keep for urgent jobs: see workers.sql.

alter table millpond_workers add column lanes text;      -- JSON list of { minPriority, reserve }; null: none are told of
