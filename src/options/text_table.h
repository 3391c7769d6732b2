/* Options whose value is a text: TEXT(name, sentence). Each is unset in every mode. Included with a
 * meaning of TEXT, hence no include guard. */

TEXT(stats, "write statistics as JSON to this file at exit, and at the first call that misses the "
            "hit path a second after it was written; %p in the name becomes the number of the "
            "process; exit: write a table to report_fd at exit")
TEXT(policy, "settings from this file (docs/learning.md), or, if it is a folder, from the file in "
             "it with the build ID of the program and .policy for its name; the environment "
             "overrides them; not set: from the program's own file, or else from the folder "
             "/etc/hakmem/policies; none: from nowhere")
TEXT(trace, "write down in this file what is allocated and freed (docs/trace.md), to be looked at "
            "or replayed; sets check_frees, and every call takes the slow path; %p in the name "
            "becomes the number of the process")
TEXT(profile, "write a heap profile, in the format of pprof, to this file when the program ends; "
              "%p in the name becomes the number of the process")
