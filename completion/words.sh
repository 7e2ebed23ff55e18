# SPDX-License-Identifier: Apache-2.0
#
# Completion of dpgen, and of the programs in folders that it writes; bash and zsh add their part.  Commands, options, and what
# their values and arguments are, stand in --help, so there is no list to keep.

# Programs are asked: of others called train or sample, only those that lie in a folder of dpgen
_dpgen_is() { case $1 in dpgen | */dpgen) ;; */*) [ -e "${1%/*}/plan.json" ] ;; *) false ;; esac }

_dpgen_said()           # PROGRAM WHAT COMMAND OPTION, of its --help
{
    case $2 in
        commands) "$1" --help | sed -n 's/^dpgen \([a-z][a-z]*\) .*/\1/p' ;;
        options) "$1" ${3:+"$3"} --help | grep -o -E '^  (-[-a-zA-Z]+(, )?)+' | tr -d ' ' | tr ',' '\n' ;;
        value) "$1" ${3:+"$3"} --help | sed -n "s/^  $4 \([A-Z][^ ]*\).*/\1/p" ;;
        argument) "$1" ${3:+"$3"} --help | sed -n "1s/^dpgen $3 *\([^ ].*[^ ]\)  .*/\1/p" ;;
        names) "$1" check "$3" -d b | sed -n 's/^op F:/op /; s/^[ost][a-z]* \([^ ]*\) .*/\1/p' | sort -u ;;
    esac 2>/dev/null
}

_dpgen_candidates()     # PROGRAM COMMAND MODEL PLACE BEFORE WORD: a word a line; /any, /folders, /*.SUFFIX for files
{
    case $5 in
        --planner | --planners | --schedule | -d) "$1" "${5%s}" '?' | cut -d ' ' -f 1; return ;;
        --csv) "$1" --schedule '?' | cut -d ' ' -f 1; return ;;
        --devices) "$1" --devices '?'; echo '/*.yaml'; return ;;
        --recompute) printf '%s\n' none full auto; return ;;
        --offload) printf '%s\n' none auto; return ;;
        --fuse) printf '%s\n' none sums auto most fastest; return ;;
        --objective) printf '%s\n' step_time bottleneck throughput; return ;;
        --loss) printf '%s\n' cross-entropy mse; return ;;
        --device-order) echo free; return ;;
        --mode) printf '%s\n' train infer; return ;;
    esac
    case $6 in -*) _dpgen_said "$1" options "$2"; return ;; esac
    set -- "$1" "$2" "$3" "$4" "$5" "$(_dpgen_said "$1" value "$2" "$5")"
    if [ -z "$6" ]; then
        [ "$4" != 1 ] || _dpgen_said "$1" commands
        if [ "$2" = explain ] && [ "$4" -gt 2 ]; then _dpgen_said "$1" names "$3"; return; fi
        set -- "$1" "$2" "$3" "$4" "$5" "$(_dpgen_said "$1" argument "$2")"
    fi
    case $6 in
        *'|'* | FILE | FILE... | PATH... | LOG) echo /any ;;
        DIR | CHECKPOINT) echo /folders ;;
        *.[a-z]*) set -- "${6%% *}"; echo "/*.${1##*.}" ;;
    esac
}
