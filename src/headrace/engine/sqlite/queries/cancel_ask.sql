-- Ask a running job to stop; its worker is told, and settles it.
UPDATE job SET cancel_reason = ?1 WHERE seq = ?2;
