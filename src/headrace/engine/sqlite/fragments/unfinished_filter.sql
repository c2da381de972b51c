-- What else unfinished jobs may be asked for. A job shows its worker by name.
AND (:worker IS NULL
     OR coalesce((SELECT name FROM worker WHERE worker.id = job.worker), worker) = :worker)
