// Spring AI through what people do with it, with its OpenAI and its Anthropic model. Argument: the gateway's address. The keys are in
// KEY and POOR. Each line is a case and what came of it; see ../../libraries.test.ts.
import java.util.Base64;
import java.util.List;
import java.util.concurrent.Callable;
import org.springframework.ai.anthropic.AnthropicChatModel;
import org.springframework.ai.anthropic.AnthropicChatOptions;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.openai.OpenAiChatModel;
import org.springframework.ai.openai.OpenAiChatOptions;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.util.MimeTypeUtils;

public class Libraries {
  static final byte[] PIXEL = Base64.getDecoder().decode(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==");

  record Book(String title, int year) {}

  static class Weather {
    @Tool(name = "get_weather", description = "The weather of a city")
    String weather(String city) {
      return "sunny in " + city;
    }
  }

  static void say(String name, Callable<Object> run) {
    try {
      System.out.println(name + ": " + run.call());
    } catch (Throwable error) {
      System.out.println(name + ": ERROR " + error.getClass().getSimpleName() + " " + ("" + error.getMessage()).replace('\n', ' '));
    }
  }

  static String told(ChatResponse reply) {
    return reply.getResult().getOutput().getText() + " " + reply.getMetadata().getUsage().getTotalTokens();
  }

  static ChatClient openai(String url, String key, String model, int most) {
    var options = OpenAiChatOptions.builder().baseUrl(url + "/v1").apiKey(key).model(model).maxCompletionTokens(most).build();
    return ChatClient.create(OpenAiChatModel.builder().options((OpenAiChatOptions) options).build());
  }

  static ChatClient anthropic(String url, String key, String model, int most) {
    var options = AnthropicChatOptions.builder().baseUrl(url).apiKey(key).model(model).maxTokens(most).build();
    return ChatClient.create(AnthropicChatModel.builder().options((AnthropicChatOptions) options).build());
  }

  interface Made {
    ChatClient of(String key, String model, int most);
  }

  static void cases(String name, Made made) {
    var key = System.getenv("KEY");
    var rich = made.of(key, "core-3", 2_000);
    var tag = "#spring-" + name + "]]";
    say(name + " text", () -> told(rich.prompt("[[reasoning-text" + tag).call().chatResponse()));
    say(name + " stream", () -> String.join("", rich.prompt("[[reasoning-text" + tag).stream().content().collectList().block()));
    say(name + " tools", () -> told(rich.prompt("[[parallel-tools" + tag).tools(new Weather()).call().chatResponse()));
    say(name + " tools stream", () -> String.join("",
        rich.prompt("[[parallel-tools#spring-stream-" + name + "]]").tools(new Weather()).stream().content().collectList().block()));
    say(name + " object", () -> rich.prompt("[[json" + tag).call().entity(Book.class));
    say(name + " image", () -> told(rich.prompt().user(user -> user.text("[[text#spring-seen-" + name + "]]")
        .media(MimeTypeUtils.IMAGE_PNG, new ByteArrayResource(PIXEL))).call().chatResponse()));
    say(name + " key", () -> made.of("wrong", "core-3", 100).prompt("x").call().content());
    say(name + " model", () -> made.of(key, "nobody", 100).prompt("x").call().content());
    say(name + " balance", () -> made.of(System.getenv("POOR"), "core-3", 60_000).prompt("x").call().content());
    say(name + " context", () -> rich.prompt("[[prompt-too-long" + tag).call().content());
    say(name + " failed", () -> String.join("", rich.prompt("[[error-mid-stream" + tag).stream().content().collectList().block()));
    say(name + " left", () -> rich.prompt("[[endless#spring-left-" + name + "]]").stream().content().take(5).collectList().block().size());
    say(name + " flood", () -> rich.prompt("[[status-429" + tag).call().content());
  }

  public static void main(String[] words) {
    cases("chat", (key, model, most) -> openai(words[0], key, model, most));
    cases("messages", (key, model, most) -> anthropic(words[0], key, model, most));
    System.exit(0);
  }
}
