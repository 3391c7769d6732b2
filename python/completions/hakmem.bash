# Made by tools/completions.py; do not edit. What bash completes after the command hakmem.
_hakmem() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local words= name= at=2 command=${COMP_WORDS[1]}
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        words='run stat top why profile leaks trace learn tune policy --version --library --help'
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
    fi
    while [ $at -lt "$COMP_CWORD" ]; do # skips what stands before the program
        case ${COMP_WORDS[at]} in
        --depth | --every | --mean | --minutes | --most | --out | --over | --pairs | --price | --seed | --show | --trials) at=$((at + 1)) ;;
        --) at=$((at + 1)) && break ;;
        -*) ;;
        *)
            [ "${COMP_WORDS[at + 1]}" = = ] || break
            name=${COMP_WORDS[at]} at=$((at + 2))
            ;;
        esac
        at=$((at + 1))
    done
    if [ "$before" = = ] || [ "$current" = = ]; then
        [ "$current" = = ] && name=$before && current=
        name=${name#HAKMEM_}
        case ${name,,} in
        mode) words='balanced minimal checked debug learning' ;;
        bigcache | learn | background | watch_limits | thp_adaptive | junk | size_check | check_frees | deepbind | ld_safe | free_route_trace) words='on off' ;;
        free_policy) words='keep batch adaptive' ;;
        price) words='lean balanced fast' ;;
        leak_report) words='off sizes stacks' ;;
        esac
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
    fi
    case $before in
    --show) words='held allocated moved' ;;
    --depth | --every | --mean | --minutes | --most | --out | --over | --pairs | --price | --seed | --show | --trials) return ;;
    esac
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
    fi
    [ $at -ge "$COMP_CWORD" ] || return # the program's own arguments
    case $command in
    run | stat) words='--help' ;;
    top) words='--every --help' ;;
    why) words='--over --help' ;;
    profile) words='--mean --show --most --out --help' ;;
    leaks) words='--most --depth --fail --help' ;;
    trace) words='--out --help' ;;
    learn) words='--mean --pairs --trials --within --out --help' ;;
    tune) words='--price --minutes --pairs --seed --out --help' ;;
    policy) words='--help show check diff merge compile' ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    case $command in
    run | profile | leaks | trace | learn | tune)
        words='mode= tiny_fast_cap= bigcache= bigcache_max_mb= purge_delay_ms= free_policy= price= learn= background= processor_groups= limit_mb= watch_limits= thp_min_heap_mb= thp_adaptive= junk= size_check= check_frees= leak_report= profile_mean_kb= report_fd= deepbind= ld_safe= free_route_trace= stats= policy= trace= learn_log= profile='
        COMPREPLY+=($(compgen -W "$words" -- "$current"))
        COMPREPLY+=($(compgen -c -- "$current"))
        [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
        ;;
    stat | top | why)
        words=$(cd /proc && echo [0-9]*)
        COMPREPLY+=($(compgen -W "$words" -- "$current"))
        ;;
    esac
}
complete -o bashdefault -o default -F _hakmem hakmem
