// tollgate completion SHELL: prints the completion script, which calls `tollgate complete`.
import { type Invocation, UsageError } from "./command.ts";

const scripts: Readonly<Record<string, string>> = {
  bash: `# source <(tollgate completion bash)
_tollgate() {
  local answer line
  COMPREPLY=()
  answer=$("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return 0
  case $answer in
    :files) compopt -o default ;;
    :folders) compopt -o dirnames ;;
    ?*) while IFS= read -r line; do COMPREPLY+=("\${line%%$'\\t'*}"); done <<< "$answer" ;;
  esac
}
complete -F _tollgate tollgate`,

  zsh: `#compdef tollgate
# source <(tollgate completion zsh), after compinit
_tollgate() {
  local answer
  local -a lines
  answer=$("$words[1]" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null) || return 0
  case $answer in
    :files) _files ;;
    :folders) _files -/ ;;
    ?*) lines=("\${(@f)answer}"); lines=("\${(@)lines//:/\\\\:}"); lines=("\${(@)lines/$'\\t'/:}"); _describe tollgate lines ;;
  esac
}
compdef _tollgate tollgate`,

  fish: `# tollgate completion fish | source
function __tollgate_complete
  set -l before (commandline -opc)
  set -l current (commandline -ct)
  set -l lines ($before[1] complete -- $before[2..-1] "$current" 2>/dev/null)
  switch "$lines"
    case :files
      __fish_complete_path "$current"
    case :folders
      __fish_complete_directories "$current"
    case '*'
      printf '%s\\n' $lines
  end
end
complete -c tollgate -f -a '(__tollgate_complete)'`,
};

export default function printCompletion({ words: [shell = ""] }: Pick<Invocation, "words">): Promise<number> {
  const script = scripts[shell];
  if (script === undefined)
    throw new UsageError(`completion: ${Object.keys(scripts).join(", ")}, not ${JSON.stringify(shell)}`);
  console.log(script);
  return Promise.resolve(0);
}
