# Completion of svc for bash, made by `svc completion bash`.
_svc() {
    local where="svc" commands="" flags="" index
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        case "$where ${COMP_WORDS[index]}" in
            "svc upload" | "svc import" | "svc sync" | "svc diff" | "svc ignore" | "svc ignore check" | "svc ignore list" | "svc watch" | "svc watch run" | "svc watch add" | "svc watch rm" | "svc watch ls" | "svc watch status" | "svc watch flush" | "svc watch log" | "svc status" | "svc wait" | "svc search" | "svc ask" | "svc cite" | "svc cite verify" | "svc eval" | "svc bucket" | "svc bucket ls" | "svc bucket create" | "svc bucket set" | "svc bucket show" | "svc bucket archive" | "svc bucket export" | "svc bucket import" | "svc bucket rm" | "svc source" | "svc source ls" | "svc source show" | "svc source text" | "svc source get" | "svc source set" | "svc source retry" | "svc source refresh" | "svc source attach" | "svc source detach" | "svc source rm" | "svc batch" | "svc batch show" | "svc agent" | "svc agent ls" | "svc agent create" | "svc agent show" | "svc agent set" | "svc agent rm" | "svc console" | "svc events" | "svc webhook" | "svc webhook deliveries" | "svc webhook resend" | "svc webhook secret" | "svc webhook verify" | "svc webhook listen" | "svc key" | "svc key create" | "svc key ls" | "svc key revoke" | "svc mcp" | "svc daemon" | "svc daemon run" | "svc daemon start" | "svc daemon stop" | "svc daemon restart" | "svc daemon status" | "svc daemon logs" | "svc daemon install" | "svc daemon uninstall" | "svc auth" | "svc auth login" | "svc auth logout" | "svc auth status" | "svc auth token" | "svc config" | "svc config path" | "svc config get" | "svc config set" | "svc config trust" | "svc config list" | "svc doctor" | "svc completion" | "svc help" | "svc help ignore" | "svc help watch" | "svc help cite" | "svc help bucket" | "svc help source" | "svc help batch" | "svc help agent" | "svc help webhook" | "svc help key" | "svc help daemon" | "svc help auth" | "svc help config")
                where="$where ${COMP_WORDS[index]}" ;;
        esac
    done
    case "$where $previous" in
        "svc --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc --base-url")
            return ;;
        "svc upload --bucket" | "svc upload -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc upload --title")
            return ;;
        "svc upload --tag")
            return ;;
        "svc upload --meta")
            return ;;
        "svc upload --wait")
            COMPREPLY=($(compgen -W "ready accepted" -- "$current")); return ;;
        "svc upload --timeout")
            return ;;
        "svc upload --mode")
            COMPREPLY=($(compgen -W "auto one session batch" -- "$current")); return ;;
        "svc upload --jobs" | "svc upload -j")
            return ;;
        "svc upload --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc upload --base-url")
            return ;;
        "svc import --bucket" | "svc import -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc import --as")
            COMPREPLY=($(compgen -W "auto file page" -- "$current")); return ;;
        "svc import --every")
            return ;;
        "svc import --on-gone")
            COMPREPLY=($(compgen -W "report delete" -- "$current")); return ;;
        "svc import --webhook")
            return ;;
        "svc import --webhook-meta")
            return ;;
        "svc import --title")
            return ;;
        "svc import --tag")
            return ;;
        "svc import --meta")
            return ;;
        "svc import --wait")
            COMPREPLY=($(compgen -W "ready accepted" -- "$current")); return ;;
        "svc import --timeout")
            return ;;
        "svc import --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc import --base-url")
            return ;;
        "svc sync --bucket" | "svc sync -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc sync --name")
            return ;;
        "svc sync --prune")
            COMPREPLY=($(compgen -W "none detach delete" -- "$current")); return ;;
        "svc sync --include")
            return ;;
        "svc sync --exclude")
            return ;;
        "svc sync --max-delete")
            return ;;
        "svc sync --wait")
            COMPREPLY=($(compgen -W "ready accepted" -- "$current")); return ;;
        "svc sync --timeout")
            return ;;
        "svc sync --jobs" | "svc sync -j")
            return ;;
        "svc sync --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc sync --base-url")
            return ;;
        "svc diff --bucket" | "svc diff -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc diff --name")
            return ;;
        "svc diff --prune")
            COMPREPLY=($(compgen -W "none detach delete" -- "$current")); return ;;
        "svc diff --include")
            return ;;
        "svc diff --exclude")
            return ;;
        "svc diff --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc diff --base-url")
            return ;;
        "svc ignore check --root")
            return ;;
        "svc ignore check --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc ignore check --base-url")
            return ;;
        "svc ignore list --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc ignore list --base-url")
            return ;;
        "svc watch run --bucket" | "svc watch run -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc watch run --name")
            return ;;
        "svc watch run --prune")
            COMPREPLY=($(compgen -W "none detach delete" -- "$current")); return ;;
        "svc watch run --include")
            return ;;
        "svc watch run --exclude")
            return ;;
        "svc watch run --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc watch run --base-url")
            return ;;
        "svc watch add --bucket" | "svc watch add -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc watch add --name")
            return ;;
        "svc watch add --prune")
            COMPREPLY=($(compgen -W "none detach delete" -- "$current")); return ;;
        "svc watch add --include")
            return ;;
        "svc watch add --exclude")
            return ;;
        "svc watch add --tag")
            return ;;
        "svc watch add --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc watch add --base-url")
            return ;;
        "svc watch rm --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc watch rm --base-url")
            return ;;
        "svc watch ls --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc watch ls --base-url")
            return ;;
        "svc watch status --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc watch status --base-url")
            return ;;
        "svc watch flush --timeout")
            return ;;
        "svc watch flush --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc watch flush --base-url")
            return ;;
        "svc watch log --lines" | "svc watch log -n")
            return ;;
        "svc watch log --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc watch log --base-url")
            return ;;
        "svc status --bucket" | "svc status -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc status --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc status --base-url")
            return ;;
        "svc wait --bucket" | "svc wait -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc wait --timeout")
            return ;;
        "svc wait --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc wait --base-url")
            return ;;
        "svc search --bucket" | "svc search -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc search --agent")
            COMPREPLY=($(compgen -W "$(svc completion names agent "${COMP_WORDS[@]:1}" 2>/dev/null)" -- "$current")); return ;;
        "svc search -k")
            return ;;
        "svc search --mode")
            COMPREPLY=($(compgen -W "hybrid keyword semantic" -- "$current")); return ;;
        "svc search --tag")
            return ;;
        "svc search --timeout")
            return ;;
        "svc search --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc search --base-url")
            return ;;
        "svc ask --bucket" | "svc ask -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc ask --agent")
            COMPREPLY=($(compgen -W "$(svc completion names agent "${COMP_WORDS[@]:1}" 2>/dev/null)" -- "$current")); return ;;
        "svc ask --timeout")
            return ;;
        "svc ask --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc ask --base-url")
            return ;;
        "svc cite verify --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc cite verify --base-url")
            return ;;
        "svc eval --bucket" | "svc eval -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc eval --agent")
            COMPREPLY=($(compgen -W "$(svc completion names agent "${COMP_WORDS[@]:1}" 2>/dev/null)" -- "$current")); return ;;
        "svc eval -k" | "svc eval --k")
            return ;;
        "svc eval --mode")
            COMPREPLY=($(compgen -W "hybrid keyword semantic" -- "$current")); return ;;
        "svc eval --min-recall")
            return ;;
        "svc eval --min-mrr")
            return ;;
        "svc eval --min-ndcg")
            return ;;
        "svc eval --junit")
            return ;;
        "svc eval --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc eval --base-url")
            return ;;
        "svc bucket ls --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc bucket ls --base-url")
            return ;;
        "svc bucket create --name")
            return ;;
        "svc bucket create --description")
            return ;;
        "svc bucket create --meta")
            return ;;
        "svc bucket create --chunk-size")
            return ;;
        "svc bucket create --chunk-overlap")
            return ;;
        "svc bucket create --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc bucket create --base-url")
            return ;;
        "svc bucket set --name")
            return ;;
        "svc bucket set --description")
            return ;;
        "svc bucket set --meta")
            return ;;
        "svc bucket set --chunk-size")
            return ;;
        "svc bucket set --chunk-overlap")
            return ;;
        "svc bucket set --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc bucket set --base-url")
            return ;;
        "svc bucket show --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc bucket show --base-url")
            return ;;
        "svc bucket archive --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc bucket archive --base-url")
            return ;;
        "svc bucket export --timeout")
            return ;;
        "svc bucket export --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc bucket export --base-url")
            return ;;
        "svc bucket import --bucket" | "svc bucket import -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc bucket import --wait")
            COMPREPLY=($(compgen -W "ready accepted" -- "$current")); return ;;
        "svc bucket import --timeout")
            return ;;
        "svc bucket import --jobs" | "svc bucket import -j")
            return ;;
        "svc bucket import --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc bucket import --base-url")
            return ;;
        "svc bucket rm --timeout")
            return ;;
        "svc bucket rm --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc bucket rm --base-url")
            return ;;
        "svc source ls --bucket" | "svc source ls -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc source ls --status")
            COMPREPLY=($(compgen -W "ready all queued indexing failed" -- "$current")); return ;;
        "svc source ls --type")
            COMPREPLY=($(compgen -W "file page qa" -- "$current")); return ;;
        "svc source ls --tag")
            return ;;
        "svc source ls --match")
            return ;;
        "svc source ls --title")
            return ;;
        "svc source ls --code")
            return ;;
        "svc source ls --sort")
            return ;;
        "svc source ls --group-by")
            COMPREPLY=($(compgen -W "error_code" -- "$current")); return ;;
        "svc source ls --limit")
            return ;;
        "svc source ls --after")
            return ;;
        "svc source ls --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc source ls --base-url")
            return ;;
        "svc source show --bucket" | "svc source show -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc source show --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc source show --base-url")
            return ;;
        "svc source text --bucket" | "svc source text -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc source text --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc source text --base-url")
            return ;;
        "svc source get --bucket" | "svc source get -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc source get --output" | "svc source get -o")
            return ;;
        "svc source get --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc source get --base-url")
            return ;;
        "svc source set --bucket" | "svc source set -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc source set --title")
            return ;;
        "svc source set --tag")
            return ;;
        "svc source set --remove-tag")
            return ;;
        "svc source set --meta")
            return ;;
        "svc source set --remove-meta")
            return ;;
        "svc source set --every")
            return ;;
        "svc source set --on-gone")
            COMPREPLY=($(compgen -W "report delete" -- "$current")); return ;;
        "svc source set --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc source set --base-url")
            return ;;
        "svc source retry --bucket" | "svc source retry -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc source retry --code")
            return ;;
        "svc source retry --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc source retry --base-url")
            return ;;
        "svc source refresh --bucket" | "svc source refresh -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc source refresh --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc source refresh --base-url")
            return ;;
        "svc source attach --bucket" | "svc source attach -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc source attach --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc source attach --base-url")
            return ;;
        "svc source detach --bucket" | "svc source detach -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc source detach --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc source detach --base-url")
            return ;;
        "svc source rm --bucket" | "svc source rm -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc source rm --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc source rm --base-url")
            return ;;
        "svc batch show --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc batch show --base-url")
            return ;;
        "svc agent ls --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc agent ls --base-url")
            return ;;
        "svc agent create --name")
            return ;;
        "svc agent create --role")
            return ;;
        "svc agent create --instructions")
            return ;;
        "svc agent create --bucket" | "svc agent create -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc agent create --source")
            COMPREPLY=($(compgen -W "$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" -- "$current")); return ;;
        "svc agent create --scope")
            COMPREPLY=($(compgen -W "buckets sources team" -- "$current")); return ;;
        "svc agent create --filters")
            return ;;
        "svc agent create --top-k")
            return ;;
        "svc agent create --threshold")
            return ;;
        "svc agent create --surface")
            return ;;
        "svc agent create --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc agent create --base-url")
            return ;;
        "svc agent show --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc agent show --base-url")
            return ;;
        "svc agent set --name")
            return ;;
        "svc agent set --role")
            return ;;
        "svc agent set --instructions")
            return ;;
        "svc agent set --bucket" | "svc agent set -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc agent set --source")
            COMPREPLY=($(compgen -W "$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" -- "$current")); return ;;
        "svc agent set --scope")
            COMPREPLY=($(compgen -W "buckets sources team" -- "$current")); return ;;
        "svc agent set --filters")
            return ;;
        "svc agent set --top-k")
            return ;;
        "svc agent set --threshold")
            return ;;
        "svc agent set --surface")
            return ;;
        "svc agent set --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc agent set --base-url")
            return ;;
        "svc agent rm --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc agent rm --base-url")
            return ;;
        "svc console --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc console --base-url")
            return ;;
        "svc events --types")
            return ;;
        "svc events --bucket" | "svc events -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc events --key")
            COMPREPLY=($(compgen -W "$(svc completion names key "${COMP_WORDS[@]:1}" 2>/dev/null)" -- "$current")); return ;;
        "svc events --after")
            return ;;
        "svc events --limit")
            return ;;
        "svc events --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc events --base-url")
            return ;;
        "svc webhook deliveries --status")
            COMPREPLY=($(compgen -W "pending delivered failed" -- "$current")); return ;;
        "svc webhook deliveries --source")
            COMPREPLY=($(compgen -W "$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" -- "$current")); return ;;
        "svc webhook deliveries --limit")
            return ;;
        "svc webhook deliveries --after")
            return ;;
        "svc webhook deliveries --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc webhook deliveries --base-url")
            return ;;
        "svc webhook resend --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc webhook resend --base-url")
            return ;;
        "svc webhook secret --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc webhook secret --base-url")
            return ;;
        "svc webhook verify --header" | "svc webhook verify -H")
            return ;;
        "svc webhook verify --secret-file")
            return ;;
        "svc webhook verify --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc webhook verify --base-url")
            return ;;
        "svc webhook listen --forward-to")
            return ;;
        "svc webhook listen --bucket" | "svc webhook listen -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc webhook listen --after")
            return ;;
        "svc webhook listen --meta")
            return ;;
        "svc webhook listen --secret-file")
            return ;;
        "svc webhook listen --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc webhook listen --base-url")
            return ;;
        "svc key create --preset")
            COMPREPLY=($(compgen -W "admin ingest read" -- "$current")); return ;;
        "svc key create --can")
            return ;;
        "svc key create --bucket" | "svc key create -b")
            COMPREPLY=($(compgen -W "$(svc bucket ls --names --no-autostart 2>/dev/null)" -- "$current")); return ;;
        "svc key create --model")
            return ;;
        "svc key create --expires")
            return ;;
        "svc key create --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc key create --base-url")
            return ;;
        "svc key ls --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc key ls --base-url")
            return ;;
        "svc key revoke --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc key revoke --base-url")
            return ;;
        "svc mcp --allow")
            return ;;
        "svc mcp --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc mcp --base-url")
            return ;;
        "svc daemon run --listen")
            return ;;
        "svc daemon run --faults")
            return ;;
        "svc daemon run --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc daemon run --base-url")
            return ;;
        "svc daemon start --listen")
            return ;;
        "svc daemon start --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc daemon start --base-url")
            return ;;
        "svc daemon stop --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc daemon stop --base-url")
            return ;;
        "svc daemon restart --listen")
            return ;;
        "svc daemon restart --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc daemon restart --base-url")
            return ;;
        "svc daemon status --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc daemon status --base-url")
            return ;;
        "svc daemon logs --lines" | "svc daemon logs -n")
            return ;;
        "svc daemon logs --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc daemon logs --base-url")
            return ;;
        "svc daemon install --backup")
            return ;;
        "svc daemon install --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc daemon install --base-url")
            return ;;
        "svc daemon uninstall --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc daemon uninstall --base-url")
            return ;;
        "svc auth login --key-file")
            return ;;
        "svc auth login --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc auth login --base-url")
            return ;;
        "svc auth logout --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc auth logout --base-url")
            return ;;
        "svc auth status --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc auth status --base-url")
            return ;;
        "svc auth token --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc auth token --base-url")
            return ;;
        "svc config path --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc config path --base-url")
            return ;;
        "svc config get --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc config get --base-url")
            return ;;
        "svc config set --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc config set --base-url")
            return ;;
        "svc config trust --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc config trust --base-url")
            return ;;
        "svc config list --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc config list --base-url")
            return ;;
        "svc doctor --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc doctor --base-url")
            return ;;
        "svc completion --progress")
            COMPREPLY=($(compgen -W "auto bar plain none" -- "$current")); return ;;
        "svc completion --base-url")
            return ;;
    esac
    case "$where" in
        "svc") commands="upload import sync diff ignore watch status wait search ask cite eval bucket source batch agent console events webhook key mcp daemon auth config doctor completion help" flags="--version --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc upload") commands="" flags="--bucket --title --tag --meta --replace --as-new --wait --timeout --mode --jobs --no-create --strict --images --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc import") commands="" flags="--bucket --as --force --refresh --every --on-gone --webhook --webhook-meta --title --tag --meta --wait --timeout --no-create --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc sync") commands="" flags="--bucket --name --prune --include --exclude --follow-links --all --checksum --verify-remote --accept-root --prune-left-out --images --max-delete --wait --timeout --jobs --no-create --strict --dry-run --exit-code --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc diff") commands="" flags="--bucket --name --prune --include --exclude --follow-links --all --checksum --verify-remote --accept-root --prune-left-out --images --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc ignore") commands="check list" flags="--help" ;;
        "svc ignore check") commands="" flags="--root --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc ignore list") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc watch") commands="run add rm ls status flush log" flags="--help" ;;
        "svc watch run") commands="" flags="--bucket --name --prune --include --exclude --follow-links --stay --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc watch add") commands="" flags="--bucket --name --prune --include --exclude --tag --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc watch rm") commands="$(svc completion names watcher "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc watch ls") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc watch status") commands="$(svc completion names watcher "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc watch flush") commands="$(svc completion names watcher "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--timeout --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc watch log") commands="$(svc completion names watcher "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--lines --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc status") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --watch --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc wait") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --timeout --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc search") commands="" flags="--bucket --agent --mode --tag --explain --timeout --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc ask") commands="" flags="--bucket --agent --stream --no-stream --strict --timeout --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc cite") commands="verify" flags="--help" ;;
        "svc cite verify") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc eval") commands="" flags="--bucket --agent --k --mode --min-recall --min-mrr --min-ndcg --junit --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc bucket") commands="ls create set show archive export import rm" flags="--help" ;;
        "svc bucket ls") commands="" flags="--all --names --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc bucket create") commands="" flags="--name --description --meta --chunk-size --chunk-overlap --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc bucket set") commands="$(svc bucket ls --names --no-autostart 2>/dev/null)" flags="--name --description --meta --chunk-size --chunk-overlap --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc bucket show") commands="$(svc bucket ls --names --no-autostart 2>/dev/null)" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc bucket archive") commands="$(svc bucket ls --names --no-autostart 2>/dev/null)" flags="--restore --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc bucket export") commands="$(svc bucket ls --names --no-autostart 2>/dev/null)" flags="--no-vectors --timeout --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc bucket import") commands="" flags="--bucket --as-new --keep-mapping --no-vectors --wait --timeout --jobs --no-create --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc bucket rm") commands="$(svc bucket ls --names --no-autostart 2>/dev/null)" flags="--force --wait --timeout --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc source") commands="ls show text get set retry refresh attach detach rm" flags="--help" ;;
        "svc source ls") commands="" flags="--bucket --status --type --tag --match --title --code --stale --sort --group-by --limit --after --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc source show") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --verify --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc source text") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --chunks --hidden --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc source get") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --output --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc source set") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --title --tag --remove-tag --meta --remove-meta --every --on-gone --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc source retry") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --failed --ocr --code --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc source refresh") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --all --force --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc source attach") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc source detach") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc source rm") commands="$(svc completion names source "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--bucket --force --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc batch") commands="show" flags="--help" ;;
        "svc batch show") commands="" flags="--items --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc agent") commands="ls create show set rm" flags="--help" ;;
        "svc agent ls") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc agent create") commands="" flags="--name --role --instructions --bucket --source --scope --filters --top-k --threshold --surface --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc agent show") commands="$(svc completion names agent "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc agent set") commands="$(svc completion names agent "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--name --role --instructions --bucket --source --scope --filters --top-k --threshold --surface --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc agent rm") commands="$(svc completion names agent "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--force --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc console") commands="" flags="--print --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc events") commands="" flags="--follow --types --bucket --key --after --limit --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc webhook") commands="deliveries resend secret verify listen" flags="--help" ;;
        "svc webhook deliveries") commands="" flags="--status --source --limit --after --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc webhook resend") commands="" flags="--dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc webhook secret") commands="" flags="--rotate --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc webhook verify") commands="" flags="--header --secret-file --any-age --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc webhook listen") commands="" flags="--forward-to --bucket --after --meta --secret-file --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc key") commands="create ls revoke" flags="--help" ;;
        "svc key create") commands="" flags="--preset --can --bucket --model --expires --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc key ls") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc key revoke") commands="$(svc completion names key "${COMP_WORDS[@]:1}" 2>/dev/null)" flags="--force --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc mcp") commands="" flags="--allow --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc daemon") commands="run start stop restart status logs install uninstall" flags="--help" ;;
        "svc daemon run") commands="" flags="--listen --faults --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc daemon start") commands="" flags="--listen --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc daemon stop") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc daemon restart") commands="" flags="--listen --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc daemon status") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc daemon logs") commands="" flags="--lines --follow --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc daemon install") commands="" flags="--print --backup --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc daemon uninstall") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc auth") commands="login logout status token" flags="--help" ;;
        "svc auth login") commands="" flags="--key-file --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc auth logout") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc auth status") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc auth token") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc config") commands="path get set trust list" flags="--help" ;;
        "svc config path") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc config get") commands="base_url bucket wait progress upload.jobs upload.mode upload.timeout upload.tags upload.strict upload.no_create sync.prune sync.max_delete sync.jobs sync.timeout sync.include sync.exclude sync.follow_links sync.strict sync.no_create search.k search.mode" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc config set") commands="base_url bucket wait progress upload.jobs upload.mode upload.timeout upload.tags upload.strict upload.no_create sync.prune sync.max_delete sync.jobs sync.timeout sync.include sync.exclude sync.follow_links sync.strict sync.no_create search.k search.mode" flags="--unset --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc config trust") commands="" flags="--unset --force --dry-run --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc config list") commands="" flags="--explain --json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc doctor") commands="" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc completion") commands="bash zsh fish powershell" flags="--json --ndjson --quiet --verbose --progress --base-url --no-autostart --no-input --debug --help" ;;
        "svc help") commands="upload import sync diff ignore watch status wait search ask cite eval bucket source batch agent console events webhook key mcp daemon auth config doctor completion help options" flags="--help" ;;
        "svc help ignore") commands="check list" flags="--help" ;;
        "svc help watch") commands="run add rm ls status flush log" flags="--help" ;;
        "svc help cite") commands="verify" flags="--help" ;;
        "svc help bucket") commands="ls create set show archive export import rm" flags="--help" ;;
        "svc help source") commands="ls show text get set retry refresh attach detach rm" flags="--help" ;;
        "svc help batch") commands="show" flags="--help" ;;
        "svc help agent") commands="ls create show set rm" flags="--help" ;;
        "svc help webhook") commands="deliveries resend secret verify listen" flags="--help" ;;
        "svc help key") commands="create ls revoke" flags="--help" ;;
        "svc help daemon") commands="run start stop restart status logs install uninstall" flags="--help" ;;
        "svc help auth") commands="login logout status token" flags="--help" ;;
        "svc help config") commands="path get set trust list" flags="--help" ;;
    esac
    [[ $current == -* ]] && commands="$flags"
    [[ -n $commands ]] && COMPREPLY=($(compgen -W "$commands" -- "$current"))
}
complete -o bashdefault -o default -F _svc svc
