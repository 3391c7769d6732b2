/* Words that may stand for the value of an option: WORD(unit, word, value). Switches and policies
 * take words alone, other units numbers too. Included with a meaning of WORD, hence no include
 * guard. */

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

WORD(PRICE, "lean", 3500)
WORD(PRICE, "balanced", 700)
WORD(PRICE, "fast", 70)
