# For Homebrew on Linux. Put it into Formula/ of a tap (brew tap-new); brew install builds it.
class Hakmem < Formula
  desc "General-purpose memory allocator that replaces malloc"
  homepage "@HOMEPAGE@"
  url "@URL@"
  sha256 "@SHA256@"
  license "MIT"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on :linux

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DHAKMEM_LIBRARY_ONLY=ON", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  def caveats
    "hakmem run needs nothing else. hakmem why, stat, leaks and so on need a python3 with click, rich, pyelftools and protobuf."
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/hakmem --version")
    assert_equal "works\n", shell_output("#{bin}/hakmem run -- echo works")
  end
end
