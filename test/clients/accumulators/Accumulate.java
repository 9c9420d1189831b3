// The official Java client's accumulator. Arguments: base address, model. The key is in KEY; see accumulators.test.ts.
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.core.http.StreamResponse;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.FunctionDefinition;
import com.openai.models.FunctionParameters;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionStreamOptions;
import java.util.List;

public class Accumulate {
  public static void main(String[] args) {
    OpenAIClient client =
        OpenAIOkHttpClient.builder().baseUrl(args[0]).apiKey(System.getenv("KEY")).maxRetries(0).build();
    for (String form : List.of("default", "apart")) {
      for (String script : List.of("text", "one-tool")) {
        var params =
            ChatCompletionCreateParams.builder().model(args[1]).addUserMessage("hello [[" + script + "]]");
        if (form.equals("apart")) {
          params.streamOptions(ChatCompletionStreamOptions.builder().includeUsage(true).build());
        }
        if (script.equals("one-tool")) {
          var schema = FunctionParameters.builder().putAdditionalProperty("type", JsonValue.from("object")).build();
          params.addFunctionTool(FunctionDefinition.builder().name("get_weather").parameters(schema).build());
        }
        var accumulator = ChatCompletionAccumulator.create();
        String said;
        try (StreamResponse<ChatCompletionChunk> stream = client.chat().completions().createStreaming(params.build())) {
          stream.stream().forEach(accumulator::accumulate);
          var whole = accumulator.chatCompletion();
          var choice = whole.choices().get(0);
          said =
              choice.message().content().orElse("")
                  + "|" + choice.finishReason()
                  + "|" + choice.message().toolCalls().map(List::size).orElse(0)
                  + "|" + whole.usage().map(usage -> usage.totalTokens()).orElse(0L);
        } catch (Exception error) {
          said = error.toString();
        }
        System.out.println("openai-java " + form + " " + script + ": " + said);
      }
    }
    System.exit(0); // its threads live on
  }
}
