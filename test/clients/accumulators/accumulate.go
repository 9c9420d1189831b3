// The official Go client's accumulator. Arguments: base address, model. The key is in KEY; see accumulators.test.ts.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	client := openai.NewClient(option.WithBaseURL(os.Args[1]), option.WithAPIKey(os.Getenv("KEY")), option.WithMaxRetries(0))
	for _, form := range []string{"default", "apart"} {
		for _, script := range []string{"text", "one-tool"} {
			params := openai.ChatCompletionNewParams{
				Model:    os.Args[2],
				Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello [[" + script + "]]")},
			}
			if form == "apart" {
				params.StreamOptions.IncludeUsage = openai.Bool(true)
			}
			if script == "one-tool" {
				parameters := openai.FunctionParameters{"type": "object"}
				function := openai.FunctionDefinitionParam{Name: "get_weather", Parameters: parameters}
				params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(function)}
			}
			stream := client.Chat.Completions.NewStreaming(context.Background(), params)
			whole := openai.ChatCompletionAccumulator{}
			fits := true
			for stream.Next() {
				fits = whole.AddChunk(stream.Current()) && fits
			}
			if stream.Err() != nil || !fits || len(whole.Choices) != 1 {
				fmt.Printf("openai-go %s %s: %v %v %d\n", form, script, stream.Err(), fits, len(whole.Choices))
				continue
			}
			choice := whole.Choices[0]
			calls := len(choice.Message.ToolCalls)
			fmt.Printf("openai-go %s %s: %s|%s|%d|%d\n", form, script, choice.Message.Content, choice.FinishReason, calls, whole.Usage.TotalTokens)
		}
	}
}
