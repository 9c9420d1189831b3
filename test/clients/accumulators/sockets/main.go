// The official Go client's responses over a WebSocket. Arguments: base address. The key is in KEY; see
// ../../response-sockets.test.ts.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client := openai.NewClient(option.WithBaseURL(os.Args[1]), option.WithAPIKey(os.Getenv("KEY")))
	conn, err := client.Responses.Connect(ctx, responses.ResponseConnectionOptions{})
	must(err)
	defer conn.Close()
	create := func(input string, previousID string, streamID string) {
		event := responses.ResponsesClientEventResponseCreateParam{
			Model: "core-3",
			Store: openai.Bool(false),
			Input: responses.ResponsesClientEventResponseCreateInputUnionParam{OfString: openai.String(input)},
		}
		if previousID != "" {
			event.PreviousResponseID = openai.String(previousID)
		}
		if streamID != "" {
			event.StreamID = openai.String(streamID)
		}
		must(conn.Create(ctx, event))
	}

	create("hello [[text#go]]", "", "")
	first, err := conn.FinalResponse(ctx)
	must(err)
	create("and?", first.ID, "")
	second, err := conn.FinalResponse(ctx)
	must(err)

	slow, err := conn.Lane("slow")
	must(err)
	quick, err := conn.Lane("quick")
	must(err)
	create("[[slow#go]]", "", "slow")
	create("[[text#go]]", "", "quick")
	slowEnd, err := slow.FinalResponse(ctx)
	must(err)
	quickEnd, err := quick.FinalResponse(ctx)
	must(err)

	create("x", "resp_missing", "")
	_, err = conn.FinalResponse(ctx)
	var refused *responses.ResponseProtocolError
	if !errors.As(err, &refused) {
		log.Fatal("not refused: ", err)
	}
	said, err := json.Marshal(map[string]any{
		"continued": []any{first.OutputText(), second.PreviousResponseID == first.ID},
		"streams":   []any{quickEnd.Status, slowEnd.Status},
		"refused":   refused.Event.OfResponsesServerEventResponseWsError.Error.Code,
	})
	must(err)
	fmt.Println(string(said))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
