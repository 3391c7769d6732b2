/* Words that may stand for the value of an option: WORD(unit, word, value). Switches, policies and
 * kinds of leak reports take words alone, other units numbers too. Included with a meaning of WORD,
 * hence no include guard. */

WORD(SWITCH, "off", 0)
WORD(SWITCH, "on", 1)
WORD(SWITCH, "0", 0)
WORD(SWITCH, "1", 1)
WORD(SWITCH, "no", 0)
WORD(SWITCH, "yes", 1)
WORD(SWITCH, "false", 0)
WORD(SWITCH, "true", 1)

WORD(POLICY, "keep", 0)
WORD(POLICY, "batch", 1)
WORD(POLICY, "adaptive", 2)

WORD(LEAKS, "off", 0)
WORD(LEAKS, "sizes", 1)
WORD(LEAKS, "stacks", 2)
WORD(LEAKS, "on", 1)
WORD(LEAKS, "0", 0)
WORD(LEAKS, "1", 1)
WORD(LEAKS, "no", 0)
WORD(LEAKS, "yes", 1)
WORD(LEAKS, "false", 0)
WORD(LEAKS, "true", 1)

WORD(PRICE, "lean", 3500)
WORD(PRICE, "balanced", 700)
WORD(PRICE, "fast", 70)

WORD(HEAP_SIZE, "off", 1048576)
