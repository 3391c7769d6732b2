# Comments of the headers are plain; Doxygen reads those that begin otherwise. The first one is
# about the file. Headings of parts are no comments of what follows them.
1s:^/\* :/** \\file\n * :
1s:^// :/// \\file\n/// :
/^(\/\*|\/\/) ----/d
s:^( *)/\* :\1/** :
s:([;,{]) +/\* :\1 /**< :
s:^( *)//( |$):\1///\2:
# What is indented is code.
s:^( *(\*|///))   +([^ ]):\1       \3:
