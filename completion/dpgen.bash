# SPDX-License-Identifier: Apache-2.0
#
# Completion of dpgen for bash.  Commands and options are those of dpgen --help, so there is no list to keep.

_dpgen_words()          # PROGRAM commands | options | planners | schedules | devices | letters
{
    case $2 in
        commands) "$1" --help | sed -n 's/^dpgen \([a-z][a-z]*\) .*/\1/p' ;;
        options) "$1" --help | grep -o -E '(^|[ (])-(-[a-z][a-z-]*|[A-Za-z])' | tr -d ' (' | sort -u ;;
        planners) "$1" --planner '?' | cut -d ' ' -f 1 ;;
        schedules) "$1" --schedule '?' | cut -d ' ' -f 1 ;;
        devices) "$1" --devices '?' ;;
        letters) "$1" -d '?' | cut -c 1 ;;
    esac 2>/dev/null
}

_dpgen()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words='' files=
    case $before in
        --planner | --planners) words=$(_dpgen_words "$1" planners) ;;
        --devices) words=$(_dpgen_words "$1" devices) files=yes ;;
        --schedule) words=$(_dpgen_words "$1" schedules) ;;
        --recompute) words='none full auto' ;;
        --offload) words='none auto' ;;
        --fuse) words='none sums auto most fastest' ;;
        --objective) words='step_time bottleneck' ;;
        --device-order) words=free ;;
        -d) words=$(_dpgen_words "$1" letters) ;;
        -o | --from | --order | --profile | pack) files=yes ;;
        *)
            files=yes
            [ "$COMP_CWORD" != 1 ] || words=$(_dpgen_words "$1" commands)
            case $word in -*) words=$(_dpgen_words "$1" options) files= ;; esac
            ;;
    esac
    COMPREPLY=()
    while IFS= read -r words; do COMPREPLY+=("$words"); done < <(compgen ${files:+-f} -W "$words" -- "$word")
}
complete -o filenames -F _dpgen dpgen
