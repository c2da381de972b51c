-- Ask a running job to stop; its worker is told, and settles it. The first who asks gives the reason.
UPDATE job SET cancel_reason = coalesce(cancel_reason, ?1) WHERE seq = ?2;
