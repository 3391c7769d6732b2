/* Options whose value is a text: TEXT(name, sentence). Each is unset in every mode. Included with a
 * meaning of TEXT, hence no include guard. */

TEXT(stats, "write statistics as JSON to this file at exit, and meanwhile by calls that miss the "
            "hit path, at most once a second; %p in the name becomes the process number; exit: "
            "write a table to report_fd at exit")
TEXT(policy, "read settings from this file (docs/learning.md), or from the file BUILD-ID.policy in "
             "this folder; the environment overrides them; not set: from the program's own file, "
             "or else from the folder /etc/hakmem/policies; none: from no file")
TEXT(profile, "write a heap profile in the format of pprof to this file, while the program runs "
              "and when it ends; %p in the name becomes the process number")
