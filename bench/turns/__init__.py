"""Two versions of Headrace compared by the processor time that a job costs."""
