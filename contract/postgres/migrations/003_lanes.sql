-- The slots that workers keep for urgent jobs: see workers.sql.

alter table millpond.meta alter version set default 3;

-- A list of { minPriority, reserve }; null: none are told of.
alter table millpond.workers add column lanes json constraint lanes_too_large check (octet_length(lanes::text) <= 1024);
