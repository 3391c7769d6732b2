/* Matches between strategies. See trial.h. */
#include "learn/trial.h"

#include "base/bits.h"

enum { INCUMBENT, CHALLENGER, ROUND_EPOCHS = 4, DEFAULT = 0, STEPS = 2 * PARAMETER_COUNT };

const char *const trial_state_names[TRIAL_STATE_COUNT] = {"off", "learn", "canary", "frozen"};
const char *const trial_event_names[EVENT_COUNT] = {
    "won", "lost", "drawn", "promoted", "rolled_back", "frozen", "drifted"};
const char *const trial_reason_names[REASON_COUNT] = {
    "none", "cheaper", "dearer", "level", "held", "fresh", "cost", "refused", "promised", "tried"};

/* ---- costs and guards ---- */

uint64_t trial_cost(const trial_epoch_t *epoch, uint64_t price)
{
    uint64_t ns = epoch->misses * LEARN_MISS_NS + epoch->slab_misses * LEARN_SLAB_NS;
    ns += epoch->purge_ns + (epoch->fresh_kib * (REFAULT_GIB_MS * UINT64_C(1000000)) >> 20);
    ns += (epoch->idle_kib_ms * price >> 20) * 1000;
    return ns * 1000 / larger_of(epoch->ms, 1);
}

static bool holds_too_much(const trial_epoch_t *epoch, const trial_epoch_t *base, uint64_t growth)
{
    uint64_t held = epoch->used_kib + epoch->idle_kib;
    uint64_t usual = base->used_kib + base->idle_kib;
    return held > usual + usual * LEARN_GUARD_PERCENT / 100 + LEARN_GUARD_BYTES / KIB + growth;
}

static bool has_too_many_fresh(const trial_epoch_t *epoch, const trial_epoch_t *base,
                               uint64_t growth)
{
    uint64_t usual = base->fresh_kib * epoch->ms / larger_of(base->ms, 1);
    return epoch->fresh_kib > usual * LEARN_GUARD_TIMES + LEARN_GUARD_BYTES / KIB + growth;
}

trial_reason_t trial_broken_guard(const trial_t *trial, const trial_epoch_t *epoch, bool is_whole)
{
    unsigned running = trial_running(trial);
    const trial_match_t *match = &trial->match;
    uint64_t before = match->base.used_kib;
    /* What the program itself has taken meanwhile, be it in use still or free by now, is not the
     * doing of a strategy. */
    uint64_t peak = larger_of(match->peak_kib, larger_of(epoch->peak_kib, epoch->used_kib));
    uint64_t growth = peak - smaller_of(peak, before);
    if (epoch->refusals != 0 && (running != trial->incumbent || running != DEFAULT))
        return REASON_REFUSED;
    /* The incumbent is what others are compared with. */
    if (running == trial->incumbent)
        return REASON_NONE;
    if (holds_too_much(epoch, &match->base, growth))
        return REASON_HELD;
    if (has_too_many_fresh(epoch, &match->base, larger_of(growth, epoch->taken_kib)))
        return REASON_FRESH;
    uint64_t most = match->base_cost * LEARN_GUARD_TIMES + LEARN_GUARD_NS;
    return is_whole && trial_cost(epoch, trial->price) > most ? REASON_COST : REASON_NONE;
}

/* ---- records and ratings ---- */

static void note(trial_t *trial, trial_event_t event, trial_reason_t reason, unsigned who,
                 uint64_t cost, uint64_t other_cost)
{
    trial_record_t *record = &trial->records[trial->record_count++ % LEARN_RECORDS];
    *record = (trial_record_t){
        .epoch = trial->epochs,
        .cost = cost,
        .other_cost = other_cost,
        .strategy = trial->contenders[who].strategy,
        .other = trial->contenders[trial->incumbent].strategy,
        .event = (uint8_t)event,
        .reason = (uint8_t)reason,
    };
}

/* Thousandths of a point that a player may expect who is so many times 50 points ahead:
 * 1 / (1 + 10^(-difference / 400)), rounded (Elo, 1978). */
static const uint16_t expected_points[] = {500, 571, 640, 703, 760, 808, 849, 882, 909};

enum { RATING_STEP = 50, WIN = 1000, DRAW = 500 };

static int expected(int ahead)
{
    size_t step = (size_t)(ahead < 0 ? -ahead : ahead) / RATING_STEP;
    size_t last = sizeof expected_points / sizeof *expected_points - 1;
    int points = expected_points[smaller_of(step, last)];
    return ahead < 0 ? WIN - points : points;
}

/* The challenger has so many thousandths of a point. What it takes the incumbent loses. */
static void rate(trial_t *trial, int points)
{
    contender_t *challenger = &trial->contenders[trial->challenger];
    contender_t *incumbent = &trial->contenders[trial->incumbent];
    int gain = LEARN_RATING_STEP * (points - expected(challenger->rating - incumbent->rating));
    gain /= WIN;
    challenger->rating += gain;
    incumbent->rating -= gain;
    challenger->matches++;
    incumbent->matches++;
    challenger->wins += points == WIN;
    incumbent->wins += points == 0;
}

/* ---- who plays ---- */

static bool is_neighbour(const strategy_t *left, const strategy_t *right)
{
    int distance = 0;
    for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++) {
        int difference = left->doublings[parameter] - right->doublings[parameter];
        distance += difference < 0 ? -difference : difference;
    }
    return distance == 1;
}

static bool is_quarantined(const trial_t *trial, const contender_t *contender)
{
    return contender->quarantined_until > trial->epochs;
}

static bool may_play(const trial_t *trial, unsigned who)
{
    const contender_t *contender = &trial->contenders[who];
    return contender->is_known && who != trial->incumbent && !contender->was_tried &&
           !is_quarantined(trial, contender);
}

/* A strategy that has won before, or lost nothing. LEARN_STRATEGIES: there is none. */
static unsigned best_rated(const trial_t *trial)
{
    unsigned best = LEARN_STRATEGIES;
    for (unsigned who = 0; who < LEARN_STRATEGIES; who++)
        if (may_play(trial, who) && trial->contenders[who].rating >= LEARN_RATING &&
            (best == LEARN_STRATEGIES ||
             trial->contenders[who].rating > trial->contenders[best].rating))
            best = who;
    return best;
}

/* The place of whoever is least worth remembering: an empty one, or the lowest rating. What stands
 * next to the incumbent and had its turn, or may have none now, would only be bred again. */
static unsigned place_to_give(const trial_t *trial)
{
    const strategy_t *centre = &trial->contenders[trial->incumbent].strategy;
    unsigned worst = LEARN_STRATEGIES;
    for (unsigned who = 1; who < LEARN_STRATEGIES; who++) {
        const contender_t *contender = &trial->contenders[who];
        if (!contender->is_known)
            return who;
        bool had_its_turn = contender->was_tried || is_quarantined(trial, contender);
        if (who == trial->incumbent ||
            (had_its_turn && is_neighbour(&contender->strategy, centre)))
            continue;
        if (worst == LEARN_STRATEGIES || contender->rating < trial->contenders[worst].rating)
            worst = who;
    }
    return worst;
}

/* The strategy among those known, or a place for it. LEARN_STRATEGIES: it may not play. */
static unsigned place_of(trial_t *trial, const strategy_t *strategy)
{
    for (unsigned who = 0; who < LEARN_STRATEGIES; who++)
        if (trial->contenders[who].is_known &&
            strategy_is_same(&trial->contenders[who].strategy, strategy))
            return may_play(trial, who) ? who : LEARN_STRATEGIES;
    unsigned place = place_to_give(trial);
    if (place != LEARN_STRATEGIES)
        trial->contenders[place] = (contender_t){
            .strategy = *strategy, .is_known = true, .rating = LEARN_RATING};
    return place;
}

/* The next that differs from the incumbent by one step of one value; first in the direction of the
 * last. LEARN_STRATEGIES: all of them had their turn. */
static unsigned breed(trial_t *trial)
{
    for (unsigned turn = 0; turn < STEPS; turn++) {
        unsigned step = (trial->step + turn) % STEPS;
        parameter_t parameter = (parameter_t)(step / 2);
        strategy_t child = trial->contenders[trial->incumbent].strategy;
        int value = child.doublings[parameter] + (step % 2 == 0 ? 1 : -1);
        if (value < strategy_least(parameter) || value > strategy_most(parameter))
            continue;
        child.doublings[parameter] = (int8_t)value;
        unsigned place = place_of(trial, &child);
        if (place == LEARN_STRATEGIES)
            continue;
        trial->step = step;
        return place;
    }
    return LEARN_STRATEGIES;
}

static uint64_t mean_cost(const trial_match_t *match, unsigned side)
{
    return match->rounds == 0 ? match->base_cost : match->costs[side] / (2 * match->rounds);
}

/* Begins the next match; freezes where nobody is left to play. */
static void go_on(trial_t *trial)
{
    uint64_t last_cost = mean_cost(&trial->match, INCUMBENT);
    unsigned next = best_rated(trial);
    if (next == LEARN_STRATEGIES)
        next = breed(trial);
    if (next == LEARN_STRATEGIES) {
        trial->state = TRIAL_FROZEN;
        trial->promised = last_cost;
        trial->over = 0;
        note(trial, EVENT_FROZEN, REASON_TRIED, trial->incumbent, last_cost, 0);
        return;
    }
    trial->state = TRIAL_LEARN;
    trial->challenger = next;
    trial->match = (trial_match_t){
        .base = trial->match.base, .base_cost = last_cost, .peak_kib = trial->match.peak_kib};
}

static void make_incumbent(trial_t *trial, unsigned who, uint64_t promised)
{
    for (unsigned each = 0; each < LEARN_STRATEGIES; each++)
        trial->contenders[each].was_tried = false;
    trial->incumbent = who;
    trial->promised = promised;
    trial->over = 0;
}

/* The default takes over, and nothing is tried for a while. */
static void fall_back(trial_t *trial)
{
    make_incumbent(trial, DEFAULT, 0);
    trial->state = TRIAL_LEARN;
    trial->rest = (unsigned)LEARN_REST_EPOCHS << trial->drifts;
    trial->drifts = (unsigned)smaller_of(trial->drifts + 1, LEARN_REST_DOUBLINGS);
    trial->match = (trial_match_t){.turn = 0};
}

static void quarantine(trial_t *trial, unsigned who)
{
    contender_t *contender = &trial->contenders[who];
    uint64_t epochs = (uint64_t)LEARN_QUARANTINE_EPOCHS << contender->rollbacks;
    contender->quarantined_until = trial->epochs + 1 + epochs;
    contender->rollbacks =
        (uint8_t)smaller_of(contender->rollbacks + 1u, LEARN_QUARANTINE_DOUBLINGS);
}

/* ---- what an epoch decides ---- */

static void roll_back(trial_t *trial, unsigned who, trial_reason_t reason, uint64_t cost)
{
    bool is_incumbent = who == trial->incumbent;
    uint64_t other_cost = is_incumbent ? 0 : mean_cost(&trial->match, INCUMBENT);
    note(trial, EVENT_ROLLED_BACK, reason, who, cost, other_cost);
    quarantine(trial, who);
    if (is_incumbent) {
        fall_back(trial);
        return;
    }
    rate(trial, 0); /* it may play again once its quarantine is over, if others still do */
    go_on(trial);
}

/* Does the incumbent cost more than it did when it won, for long enough? */
static bool has_drifted(trial_t *trial, uint64_t cost)
{
    if (trial->promised == 0 && trial->state == TRIAL_FROZEN)
        trial->promised = cost;
    uint64_t most = trial->promised + trial->promised * LEARN_DRIFT_PERCENT / 100;
    bool is_over = trial->promised != 0 && cost > most + LEARN_WORTH_NS;
    trial->over = is_over ? trial->over + 1 : 0;
    return trial->over >= LEARN_DRIFT_EPOCHS;
}

static void take_rest(trial_t *trial, uint64_t cost)
{
    trial->match.base_cost = cost;
    if (--trial->rest == 0)
        go_on(trial);
}

static void take_canary(trial_t *trial, uint64_t cost)
{
    trial->alone++;
    trial->alone_cost += cost;
    if (trial->alone < LEARN_CANARY_EPOCHS)
        return;
    uint64_t mean = trial->alone_cost / trial->alone;
    uint64_t usual = mean_cost(&trial->match, INCUMBENT);
    if (mean > usual) {
        roll_back(trial, trial->challenger, REASON_DEARER, mean);
        return;
    }
    unsigned loser = trial->incumbent;
    note(trial, EVENT_PROMOTED, REASON_PROMISED, trial->challenger, mean, usual);
    make_incumbent(trial, trial->challenger, mean_cost(&trial->match, CHALLENGER));
    trial->contenders[loser].was_tried = true;
    trial->match.base_cost = mean;
    trial->match.rounds = 0;
    go_on(trial);
}

static void end_match(trial_t *trial, trial_event_t event, trial_reason_t reason)
{
    const trial_match_t *match = &trial->match;
    note(trial, event, reason, trial->challenger, mean_cost(match, CHALLENGER),
         mean_cost(match, INCUMBENT));
    rate(trial, event == EVENT_WON ? WIN : event == EVENT_LOST ? 0 : DRAW);
    if (event == EVENT_WON) {
        trial->state = TRIAL_CANARY;
        trial->alone = 0;
        trial->alone_cost = 0;
        return;
    }
    trial->contenders[trial->challenger].was_tried = true;
    go_on(trial);
}

/* A round is over. The test is sequential: the match ends as soon as enough speaks for one side. */
static void judge(trial_t *trial)
{
    trial_match_t *match = &trial->match;
    uint64_t ours = match->round_cost[INCUMBENT];
    uint64_t theirs = match->round_cost[CHALLENGER];
    uint64_t margin = larger_of(ours * LEARN_MARGIN_PERCENT / 100, 2 * LEARN_WORTH_NS);
    bool is_won = theirs + margin < ours;
    bool is_lost = ours + margin < theirs;
    match->won += is_won;
    match->lost += is_lost;
    match->sum += is_won ? LEARN_ROUND_WON : is_lost ? -LEARN_ROUND_LOST : -LEARN_ROUND_LEVEL;
    match->rounds++;
    for (unsigned side = INCUMBENT; side <= CHALLENGER; side++) {
        match->costs[side] += match->round_cost[side];
        match->round_cost[side] = 0;
    }
    if (match->sum >= LEARN_MATCH_WON)
        end_match(trial, EVENT_WON, REASON_CHEAPER);
    else if (match->sum <= -LEARN_MATCH_LOST && match->lost > match->won)
        end_match(trial, EVENT_LOST, REASON_DEARER);
    else if (match->sum <= -LEARN_MATCH_LOST || match->rounds >= LEARN_ROUNDS_MOST)
        end_match(trial, EVENT_DRAWN, REASON_LEVEL);
}

static void take_turn(trial_t *trial, unsigned running, uint64_t cost)
{
    trial_match_t *match = &trial->match;
    bool is_incumbent = running == trial->incumbent;
    match->round_cost[is_incumbent ? INCUMBENT : CHALLENGER] += cost;
    if (is_incumbent)
        match->base_cost = cost;
    match->turn = (match->turn + 1) % ROUND_EPOCHS;
    if (match->turn == 0)
        judge(trial);
}

/* ---- from outside ---- */

void trial_begin(trial_t *trial, uint64_t price, const strategy_t *first)
{
    *trial = (trial_t){.state = TRIAL_LEARN, .price = price, .rest = LEARN_REST_EPOCHS};
    trial->contenders[DEFAULT] = (contender_t){.is_known = true, .rating = LEARN_RATING};
    if (!strategy_is_same(first, &trial->contenders[DEFAULT].strategy)) {
        trial->incumbent = DEFAULT + 1;
        trial->contenders[trial->incumbent] =
            (contender_t){.strategy = *first, .is_known = true, .rating = LEARN_RATING};
    }
}

unsigned trial_running(const trial_t *trial)
{
    unsigned turn = trial->match.turn;
    bool is_playing = trial->state == TRIAL_LEARN && trial->rest == 0;
    bool is_challenged = is_playing && (turn == 1 || turn == 2);
    return is_challenged || trial->state == TRIAL_CANARY ? trial->challenger : trial->incumbent;
}

void trial_take(trial_t *trial, const trial_epoch_t *epoch)
{
    if (trial->state == TRIAL_OFF)
        return;
    unsigned running = trial_running(trial);
    bool is_incumbent = running == trial->incumbent;
    uint64_t cost = trial_cost(epoch, trial->price);
    trial_reason_t broken = trial_broken_guard(trial, epoch, true);
    trial->contenders[running].age++;
    if (is_incumbent) {
        trial->match.base = *epoch;
        trial->match.peak_kib = 0;
    }
    trial->match.peak_kib = larger_of(trial->match.peak_kib, epoch->peak_kib);
    if (broken != REASON_NONE) {
        roll_back(trial, running, broken, cost);
    } else if (is_incumbent && has_drifted(trial, cost)) {
        note(trial, EVENT_DRIFTED, REASON_DEARER, running, cost, trial->promised);
        fall_back(trial);
    } else if (trial->state == TRIAL_CANARY) {
        take_canary(trial, cost);
    } else if (trial->state == TRIAL_LEARN && trial->rest != 0) {
        take_rest(trial, cost);
    } else if (trial->state == TRIAL_LEARN) {
        take_turn(trial, running, cost);
    }
    trial->epochs++;
    trial->switches += trial_running(trial) != running;
}

bool trial_is_valid(const trial_t *trial)
{
    const contender_t *contenders = trial->contenders;
    bool is_valid = strategy_is_same(&contenders[DEFAULT].strategy, &strategy_default) &&
                    trial->incumbent < LEARN_STRATEGIES && trial->challenger < LEARN_STRATEGIES;
    for (unsigned who = 0; who < LEARN_STRATEGIES; who++) {
        for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++) {
            int value = contenders[who].strategy.doublings[parameter];
            is_valid &= value >= strategy_least((parameter_t)parameter) &&
                        value <= strategy_most((parameter_t)parameter);
        }
        for (unsigned other = 0; other < who && contenders[who].is_known; other++)
            is_valid &= !contenders[other].is_known ||
                        !strategy_is_same(&contenders[who].strategy, &contenders[other].strategy);
    }
    return is_valid;
}
